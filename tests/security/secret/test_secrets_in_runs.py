"""A secret that a member, a model or a caller lets slip enters no run: no observer, log, trace or export shows it.

Each attack is one way in. It is run with a trace, a recording, logs at DEBUG and a listener to streams; then everything
that was written or told is searched for the canary.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from click.testing import CliRunner
from concertino.cli.traces import traces
from concertino.testing import Recorder, ScriptedModel, fake_agent, fake_tool

CANARY = "canary-7Qx42-Yb93-kkpw"
ENCODED = base64.b64encode(f"user:{CANARY}".encode()).decode()
CALL = '<tool_call>{"name": "look", "arguments": {"x": "1"}}</tool_call>'
FINAL = '<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
ANSWER = "<answer>done</answer>"


class Streaming(ct.Model):
    """Answers with its texts, letter by letter."""

    def __init__(self, *turns: str | ct.Reply) -> None:
        self.turns = list(turns)

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        turn = self.turns.pop(0)
        return turn if isinstance(turn, ct.Reply) else ct.Reply(turn)

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        reply = await self.chat(request)
        for letter in reply.reasoning:
            yield ct.Thought(letter)
        for letter in reply.text:
            yield letter
        yield reply


def tool(returns: Any = "fine", **options: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"members": [fake_tool("look", returns=returns, **options)], "turns": (CALL, FINAL, ANSWER)}


def agent(work: Callable[..., Any]) -> Callable[[], dict[str, Any]]:
    return lambda: {"members": [fake_agent("look", returns=work)], "turns": (CALL, FINAL, ANSWER)}


def model(*turns: str | ct.Reply) -> Callable[[], dict[str, Any]]:
    return lambda: {"members": [fake_tool("look", returns="fine")], "turns": turns}


def given(**options: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"members": [fake_tool("look", returns="fine")], "turns": (CALL, FINAL, ANSWER), **options}


def _progress(arguments: Any, context: Any) -> str:
    context.progress(1, 2, f"with {CANARY}")
    return "fine"


async def _asks_itself(arguments: Any, context: Any) -> str:
    observation = await context.call("leak", {})
    return f"it said {observation.content or observation.error.message}"


def _answers(spec: Any, arguments: Any, call_id: str) -> ct.Observation:
    return ct.Observation(call_id, spec.name, ct.Status.OK, {"echo": CANARY})


def _changes(spec: Any, observation: ct.Observation) -> None:
    assert CANARY not in repr(observation), "a hook was shown it"


ATTACKS: dict[str, Callable[[], dict[str, Any]]] = {
    "a result is the secret": tool(CANARY),
    "a result quotes it": tool(f"your header was 'Bearer {CANARY}', wasn't it"),
    "a result has it as base64": tool(f"Authorization: Basic {ENCODED}"),
    "a result has it in an address": tool(f"https://example.org/?key={CANARY}&q=1"),
    "a result has it in a value": tool({"a": {"b": [1, {"c": CANARY}]}}),
    "a result has it as a key": tool({CANARY: 1}),
    "a result has it in a list": tool([[CANARY], None]),
    "a result has it twice": tool(CANARY + CANARY),
    "a result is cut in the middle of it": tool("x" * 6655 + CANARY + "y" * 9000),
    "a large result has it": tool("word " * 30_000 + CANARY),
    "large data has it": tool({"rows": ["word " * 10] * 5_000 + [CANARY]}),
    "a result with a bill has it": tool(lambda _: ct.Result(f"paid with {CANARY}", usd=0.01)),
    "a file has it": tool(lambda _: ct.File(f"key={CANARY}".encode(), name="keys.txt")),
    "a file in a dict has it": tool(lambda _: {"file": ct.File(f"key={CANARY}".encode(), name="keys.txt")}),
    "an error quotes it": tool(raises=ValueError(f"401 for {CANARY}")),
    "an error is cut in the middle of it": tool(raises=ValueError("x" * 180 + CANARY)),
    "an error of a provider quotes it": tool(
        raises=ct.ProviderError(f"refused {CANARY}", failure=ct.FailureClass.CALLER)
    ),
    "an error of a key quotes it": tool(raises=ct.ProviderError(f"bad {CANARY}", failure=ct.FailureClass.AUTH)),
    "an error that is tried again quotes it": tool(
        sequence=[ct.ProviderError(f"later {CANARY}", failure=ct.FailureClass.NOT_EXECUTED, retry_after=0.0), "fine"]
    ),
    "a cause of an error quotes it": tool(lambda _: _caused()),
    "progress tells it": agent(_progress),
    "an agent passes it on": lambda: {
        "members": [fake_agent("look", returns=_asks_itself), fake_tool("leak", returns=CANARY)],
        "turns": (CALL, FINAL, ANSWER),
    },
    "an agent passes an error on": lambda: {
        "members": [fake_agent("look", returns=_asks_itself), fake_tool("leak", raises=OSError(CANARY))],
        "turns": (CALL, FINAL, ANSWER),
    },
    "a model writes it": model(f"I know {CANARY}.\n{CALL}", FINAL, ANSWER),
    "a model answers with it": model(CALL, FINAL, f"<answer>It is {CANARY}</answer>"),
    "a model calls with it": model(CALL.replace('"1"', json.dumps(CANARY)), FINAL, ANSWER),
    "a model thinks of it": model(ct.Reply(CALL, reasoning=f"I could say {CANARY}"), FINAL, ANSWER),
    "a model calls natively with it": model(
        ct.Reply("", (ct.ToolCall("look", json.dumps({"x": CANARY}), "c1"),)), FINAL, ANSWER
    ),
    "a model calls natively with data": model(ct.Reply("", (ct.ToolCall("look", {"x": CANARY}, "c1"),)), FINAL, ANSWER),
    "a server adds it to a reply": model(ct.Reply(CALL, extra={"echo": {"auth": CANARY}}), FINAL, ANSWER),
    "a hook answers with it": given(before=[_answers]),
    "a question holds it": given(question=f"Log in with {CANARY}"),
    "a history holds it": given(history=[ct.Message("user", f"my key is {CANARY}"), ct.Message("assistant", "ok")]),
    "instructions hold it": given(instructions=f"Use {CANARY}."),
}


def _caused() -> None:
    try:
        raise KeyError(CANARY)
    except KeyError as error:
        raise RuntimeError("it failed") from error


def written(folder: Path) -> dict[str, str]:
    """All files of a run, by their names."""
    return {str(file): file.read_text() for file in folder.rglob("*") if file.is_file()}


async def run_attack(attack: dict[str, Any], folder: Path) -> tuple[ct.Run, list[Any]]:
    """Run it; gives the run and all that its listener was told."""
    told: list[Any] = []
    recording = Recorder(folder / "recorded.jsonl", "record")
    leader = recording.model(Streaming(*attack["turns"]), "leader")
    orchestrator = ct.Orchestrator(
        leader,
        instructions=attack.get("instructions"),
        before=[*attack.get("before", []), *recording.hooks["before"]],
        after=[_changes, *recording.hooks["after"]],
    )
    handle = orchestrator.start(
        attack.get("question", "What is it?"),
        pool=ct.Pool(attack["members"]),
        history=attack.get("history"),
        trace=folder,
        on_event=told.append,
        stream_text=True,
    )
    return await handle, told


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_place_shows_the_canary_when(attack: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ct.keep_secret(CANARY)
    with caplog.at_level(logging.DEBUG):
        run, told = await run_attack(ATTACKS[attack](), tmp_path)
    assert run.stop == "answered", run.detail
    trace = ct.Trace.load(run.trace.path or "")
    seen = {
        "events": repr(told),
        "deltas": "".join(event.text for event in told if isinstance(event, ct.events.TextDelta)),
        "log": caplog.text + repr([vars(record) for record in caplog.records]),
        "run": repr(run) + str(run.answer) + run._repr_html_(),
        "trace": repr(list(trace.records)) + repr(trace.attachments()),
    }
    seen |= written(tmp_path)
    export = CliRunner().invoke(traces, ["export", str(run.trace.path)])
    seen["export"] = export.output
    assert export.exit_code == 0
    for place, text in seen.items():
        assert CANARY not in text, place
        assert ENCODED[6:-6] not in text, place
        assert CANARY[:14] not in text, place


async def test_without_a_known_secret_everything_is_as_it_was_written(tmp_path: Path) -> None:
    """The same attacks do show the text, so the search above would find it."""
    shown = 0
    for name, attack in ATTACKS.items():
        folder = tmp_path / str(len(name) * 100 + shown)
        if name != "a hook answers with it" and "before" not in attack():
            try:
                run, _ = await run_attack(attack(), folder)
            except AssertionError:
                continue
            trace = "".join(written(folder).values())
            shown += CANARY[:14] in trace or ENCODED[6:-6] in trace
            assert run.id
    assert shown > 25


async def test_a_secret_that_looks_like_a_word_destroys_no_result(tmp_path: Path) -> None:
    ct.keep_secret("localhost")
    attack = tool("the server is on localhost")()
    run, _ = await run_attack(attack, tmp_path)
    assert run.observations[0].content == "the server is on localhost"


async def test_a_word_is_hidden_in_errors(tmp_path: Path) -> None:
    ct.keep_secret("localhost")
    run, _ = await run_attack(tool(raises=ValueError("no login at localhost"))(), tmp_path)
    assert run.observations[0].error is not None
    assert run.observations[0].error.message.endswith("no login at [key]")


async def test_a_run_without_the_secret_is_the_same_with_the_secret_known(tmp_path: Path) -> None:
    attack = tool({"rows": [1, 2.5, None, "three"], "n": True})
    before, _ = await run_attack(attack(), tmp_path / "before")
    ct.keep_secret(CANARY)
    after, _ = await run_attack(attack(), tmp_path / "after")
    assert before.observations[0].content == after.observations[0].content
    assert before.answer == after.answer


async def test_a_resumed_run_repeats_nothing_though_its_secret_was_taken_out(tmp_path: Path) -> None:
    ct.keep_secret(CANARY)
    made = fake_tool("look", returns=f"with {CANARY}")
    script = (CALL.replace('"1"', json.dumps(CANARY)), FINAL, ANSWER)
    run = await ct.Orchestrator(ScriptedModel(*script)).run(f"{CANARY}?", pool=ct.Pool.of(made), trace=tmp_path)
    path = run.trace.path
    assert path is not None
    lines = path.read_bytes().splitlines(keepends=True)
    end = next(place for place, line in enumerate(lines) if b'"t":"result"' in line)
    cut = tmp_path / "cut.trace.jsonl"
    cut.write_bytes(b"".join(lines[: end + 1]))
    again = await ct.Orchestrator(ScriptedModel(FINAL, ANSWER)).resume(cut, pool=ct.Pool.of(made))
    assert again.answer == "done"
    assert len(made.calls) == 1
