"""A coverage-guided fuzzer of the readers of all strategies.

It mutates texts, beginning with one for each issue that a reader can give, and keeps what reaches a new place in the
readers' code. What may never happen: an exception, a machine that cannot be written down, a call begun early that the
finished text does not have, time that grows faster than the text.

    python -m tests.sdk.strategies.fuzzing --seconds 600
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import concertino as ct
from concertino.strategies import Act, Strategy, TaskContext
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow
from concertino.strategies.role_workflow.format import FORMS
from concertino.strategies.serial_calls import SerialCalls

ROOT = Path(__file__).parents[3]
SEEDS = ROOT / "docs/examples/strategies/issues.toml"
READERS = tuple(str(ROOT / "sdk/concertino" / part) for part in ("strategies", "reading"))
PIECES = (
    "<reasoning>",
    "</reasoning>",
    "<tool_call>",
    "</tool_call>",
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "<agent>",
    "</agent>",
    "<agent_id>",
    "</agent_id>",
    "<agent_name>cot</agent_name>",
    "<agent_input>",
    "<edge>",
    "</edge>",
    "<from>A</from>",
    "<to>B</to>",
    "<answer>",
    "</answer>",
    "<plan>",
    "</plan>",
    "<search>",
    "</search>",
    "<wiki_search>",
    "</wiki_search>",
    "<reflection>",
    "<graph>",
    "</graph>",
    '<node id="s1">',
    '<node id="s2" depends="s1">',
    "</node>",
    'solve("',
    '")',
    "{s1}",
    "${A}",
    "${",
    "${question}",
    "$${",
    "}",
    "{",
    "[",
    "]",
    "|",
    "\\|",
    '"',
    "'",
    "\\",
    "\\u0000",
    "\ud800",
    '{"name": "solve", "arguments": {"subtask": "x"}}',
    '{"name": "final_answer", "arguments": {}}',
    "```python\n",
    "```",
    "```json\n",
    "**Test Input:**",
    "**Test Output:**",
    "\\boxed{",
    "null",
    "NaN",
    "1e999",
    "-",
    "0",
    "\n",
    "\r\n",
    " ",
    "\t",
    "\u2028",
    "\ufeff",
    "é",
    "&lt;",
    "&amp;",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<",
    ">",
    "</",
    "/>",
    "1.",
    "s1:",
    "depends",
)


@dataclass
class Case:
    """One reader: a strategy, and texts to begin with."""

    name: str
    strategy: Strategy
    context: TaskContext
    corpus: list[str]
    seen: set[tuple[int, int, int]] = field(default_factory=set)
    runs: int = 0


def tools(members: dict[str, Any]) -> list[dict[str, Any]]:
    """The pool of the seeds, as function objects."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": name,
                "parameters": {"type": "object", "properties": properties, "required": sorted(properties)},
            },
        }
        for name, properties in members.items()
    ]


def cases() -> dict[str, list[Case]]:
    """By strategy, its readers."""
    seeds = tomllib.loads(SEEDS.read_text())
    offered = tools(seeds.pop("members"))
    brief = TaskContext("What is it?", offered, remaining={"units": 3.0})
    model = {"model": {"type": "string"}}
    released = TaskContext("What is it?", [*offered, *tools({"answer": model, "enhance_reasoning": model})])
    texts = [str(entry["text"]) for issues in seeds.values() for entry in issues.values() if "text" in entry]
    roles = {
        form: RoleWorkflow(
            (Role("one", prompt="{question}", reads=form, tools=("solve",) if form == "calls" else ()),),
            Agree("one.text", "one.text"),
        )
        for form in FORMS
    }
    made: dict[str, dict[str, Strategy]] = {
        "parallel-rounds": {"text": ParallelRounds(), "references": ParallelRounds(prompt="brief", references=True)},
        "serial-calls": {
            "chat": SerialCalls(),
            "strict": SerialCalls(strict=True),
            "qa": SerialCalls(form="qa"),
            "references": SerialCalls(prompt="brief", references=True),
        },
        "agent-graph": {"high": AgentGraph(), "low": AgentGraph(dom="low"), "strict": AgentGraph(strict=True)},
        "dependency-plan": {"lenient": DependencyPlan(), "strict": DependencyPlan(strict=True)},
        "role-workflow": dict(roles),
    }
    return {
        name: [
            Case(f"{name}/{key}", each, released if key == "qa" else brief, list(texts))
            for key, each in strategies.items()
        ]
        for name, strategies in made.items()
    }


def mutate(text: str, corpus: list[str], draw: Random) -> str:
    """Another text."""
    for _ in range(draw.choice((1, 1, 2, 3, 6))):
        at, to = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
        match draw.randrange(7):
            case 0:
                text = text[:at] + draw.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[min(to, at + draw.choice((1, 3, 30))) :]
            case 2:
                text = text[:at] + text[at:to][:200] * draw.choice((2, 3, 20)) + text[to:]
            case 3:
                other = draw.choice(corpus)
                cut = draw.randint(0, len(other))
                text = text[:at] + other[cut : cut + draw.choice((10, 80, 2000))] + text[to:]
            case 4:
                text = text[:at] + chr(draw.choice((draw.randrange(128), draw.randrange(0x11000)))) + text[at + 1 :]
            case 5:
                text = text.replace(draw.choice(PIECES), draw.choice(PIECES), draw.choice((1, -1)))
            case _:
                text = text[:at]
    return text[:6000]


def read(case: Case, text: str, draw: Random) -> None:
    """Have the machine of a case read a text, as a driver does, and look at what it then is."""
    machine = case.strategy.begin(case.context)
    reply = ct.Reply(text, finish_reason=draw.choice(("stop", "length", "")))
    early = {call.id: call for call in machine.complete_calls(text[: draw.randint(0, len(text))])}
    assert set(early) <= {call.id for call in machine.complete_calls(text)}, "a longer text has fewer complete calls"
    machine.on_reply(reply)
    step = machine.step()
    machine.fork().finish("rounds")
    dumped = json.dumps(machine.dump())
    if len(dumped) < 4000:
        case.strategy.restore(json.loads(dumped)).step()
    if isinstance(step, Act):
        assert step.plan.calls, "an empty plan"
        known = {call.id: call for call in step.plan.calls}
        for name, call in early.items():
            same = name not in known or (known[name].name, known[name].arguments) == (call.name, call.arguments)
            assert same, f"call {name} was begun as another one"


def places(case: Case, text: str, draw: Random) -> set[tuple[int, int, int]]:
    """Read, and tell which steps from line to line the readers took."""
    found: set[tuple[int, int, int]] = set()
    ours: dict[CodeType, bool] = {}

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code not in ours:
            ours[code] = code.co_filename.startswith(READERS)
        if not ours[code]:
            return None
        last = 0

        def follow(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                found.add((id(code), last, frame.f_lineno))
                last = frame.f_lineno
            return follow

        return follow

    # What measures coverage traces too, and would measure nothing more after a `settrace(None)`.
    before = sys.gettrace()
    sys.settrace(enter)
    try:
        read(case, text, draw)
    finally:
        sys.settrace(before)
    return found


def stretched(text: str, draw: Random, size: int) -> str:
    """A part of a text, repeated to a length."""
    at, to = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
    middle = text[at:to] or text or "<"
    return (text[:at] + middle * (size // len(middle) + 1))[:size] + text[to:]


def fuzz(case: Case, seconds: float, seed: int = 0, longest: int = 200_000, least: int = 0) -> Iterator[str]:
    """Fuzz one reader for some seconds of this thread's time; yields each fault with its text.

    Args:
        longest: characters of the texts whose time is looked at; they may take a second per million, and 0.3 s.
        least: how many texts are tried, however slow the machine is.
    """
    draw = Random(f"{case.name}:{seed}")
    for text in list(case.corpus):
        case.seen |= places(case, text, draw)
    # Of this thread: other tests of the process may have left threads that still run.
    until = time.thread_time() + seconds
    while case.runs < least or time.thread_time() < until:
        case.runs += 1
        text = mutate(draw.choice(case.corpus), case.corpus, draw)
        try:
            if case.runs % 50 == 0:
                text = stretched(text, draw, draw.choice((10_000, longest)))
                began = time.thread_time()
                read(case, text, draw)
                took = time.thread_time() - began
                # `read` reads a text up to four times: ahead twice, then tell, then what finish makes of it
                assert took < 4 * (0.3 + len(text) / 1e6), f"{took:.2f} s for {len(text):,} characters"
                continue
            new = places(case, text, draw) - case.seen
        except Exception as error:
            yield f"{case.name}: {type(error).__name__}: {error}\n{text[:2000]!r}"
            continue
        if new:
            case.seen |= new
            case.corpus.append(text)


def say(line: str) -> None:
    """Tell at once, for a run takes long."""
    sys.stdout.write(line.encode("utf-8", "backslashreplace").decode() + "\n")
    sys.stdout.flush()


def main() -> int:
    """Fuzz every strategy for so many seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--strategy", action="append")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    faults = 0
    for name, readers in cases().items():
        if chosen.strategy and name not in chosen.strategy:
            continue
        for case in readers:
            begun, before = time.monotonic(), len(case.corpus)
            for fault in fuzz(case, chosen.seconds / len(readers), chosen.seed):
                faults += 1
                say(fault)
                if faults > 20:
                    return 1
            say(
                f"FIGURE fuzz, {case.name}: {time.monotonic() - begun:.0f} s, {case.runs:,} texts, {len(case.seen):,} "
                f"steps of the reader seen, {len(case.corpus) - before} texts found a new one, {faults} faults"
            )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
