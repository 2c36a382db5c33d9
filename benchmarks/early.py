"""S13: what begins early. Calls while the model still writes, and requests of roles that do not wait for each other.

    python benchmarks/early.py [--json] [--quick]

The model streams 50 tokens a second; a round is a thought and four calls of one second each. The bar of eager dispatch
is the time of writing the last call and one second, times 1.05; the floor is that time itself. Where all calls take
equally long and nothing is written behind the last one, nothing can be saved; where the first takes two seconds, up to
one can. Three simultaneous roles need 0.4 s each; the floor is one of them. No call may start twice.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import Counter

import concertino as ct
from concertino.core.events import CallStarted
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow
from concertino.testing import ScriptedModel
from measure import Row, script

PACE = 50.0
CALL = 1.0
THOUGHT = "Each of the four is a task of its own, so they can go on side by side."
WORDS = ("one", "two", "three", "four")
ROUND = f"<reasoning>{THOUGHT}</reasoning>\n" + "\n".join(
    f'<tool_call>{{"name": "work", "arguments": {{"what": "{word}"}}}}</tool_call>' for word in WORDS
)
FINAL = '<reasoning>Done.</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
ROLE = 0.4


@ct.tool(timeout=30)
async def work(what: str) -> str:
    """Work for a second."""
    await asyncio.sleep(CALL)
    return what


@ct.tool(name="work", timeout=30)
async def uneven(what: str) -> str:
    """Work for a second, and for two at the first of the four."""
    await asyncio.sleep(2 * CALL if what == WORDS[0] else CALL)
    return what


class Speaker(ct.Model):
    """Says the same after a while."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        await asyncio.sleep(ROLE)
        return ct.Reply("<answer>7</answer>")


def writing(text: str) -> float:
    """Seconds that the model needs for a text: a token for three characters, as `ScriptedModel` counts."""
    return -(-len(text) // 3) / PACE


async def first_round(tool: ct.ToolSpec = work, *, eager: bool) -> tuple[float, int]:
    """Seconds from the first request to the last observation of the round, and calls that started twice."""
    model = ScriptedModel(ROUND, FINAL, "<answer>done</answer>", tokens_per_second=PACE)
    run = await ct.Orchestrator(model, eager=eager).run("What?", pool=ct.Pool.of(tool))
    started = Counter(event.call_id for event in run.events if isinstance(event, CallStarted))
    assert [seen.content for seen in run.rounds[0].observations] == list(WORDS)
    return run.rounds[0].ended, sum(count - 1 for count in started.values())


async def roles(order: str) -> float:
    """Seconds of one turn of three roles."""
    members = tuple(Role(name, prompt=f"You are {name}. {{question}}", reads="answer") for name in ("a", "b", "c"))
    workflow = RoleWorkflow(members, Agree("a.value", "c.value"), turns=1, order=order)  # type: ignore[arg-type]
    pool = ct.Pool.of(work, ct.ModelSpec("speaker", Speaker), orchestrator="speaker")
    began = time.perf_counter()
    await ct.Orchestrator(strategy=workflow).run("What?", pool=pool)
    return time.perf_counter() - began


async def measured(quick: bool) -> list[Row]:
    """All figures."""
    repeat = 1 if quick else 2
    eager = [await first_round(eager=True) for _ in range(repeat)]
    waiting = [await first_round(eager=False) for _ in range(repeat)]
    least = writing(ROUND) + CALL
    seconds, without = statistics.median(s for s, _ in eager), statistics.median(s for s, _ in waiting)
    saved = f"{writing(ROUND):.2f} s of writing; without eager dispatch {without:.2f} s"
    sooner = statistics.median([(await first_round(uneven, eager=True))[0] for _ in range(repeat)])
    later = statistics.median([(await first_round(uneven, eager=False))[0] for _ in range(repeat)])
    together = statistics.median([await roles("simultaneous") for _ in range(repeat)])
    one_by_one = statistics.median([await roles("sequential") for _ in range(repeat)])
    return [
        Row("S13", "four calls of 1 s, begun while the model writes", seconds, "s", 1.05 * least, least, note=saved),
        Row("S13", "the same, the first call takes 2 s", sooner, "s", 1.05 * least, least,
            note=f"without eager dispatch {later:.2f} s: {later - sooner:.2f} s are saved"),
        Row("S13", "calls that started twice", float(max(twice for _, twice in eager)), "", 0.0),
        Row("S13", "three simultaneous roles of 0.4 s", together, "s", 0.46, ROLE,
            note=f"one after another {one_by_one:.2f} s"),
    ]  # fmt: skip


def rows(quick: bool) -> list[Row]:
    """All figures."""
    return asyncio.run(measured(quick))


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
