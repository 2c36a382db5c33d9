"""Text as it is written: who hears it, what it adds up to, and that nobody else pays for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import concertino as ct
import pytest
from concertino.core.events import TextDelta
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow
from concertino.testing import ScriptedModel

CALL = '<reasoning>look</reasoning>\n<tool_call>{"name": "double", "arguments": {"x": 21}}</tool_call>'
FINAL = '<reasoning>done</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
ANSWER = "<answer>It is 42.</answer>"


@ct.tool
def double(x: int) -> int:
    """Double a number."""
    return 2 * x


@ct.tool
def search(query: str) -> str:
    """Search for a text."""
    return query


async def deltas(leader: ct.Orchestrator, **options: Any) -> tuple[list[TextDelta], ct.Run]:
    found: list[TextDelta] = []
    item: Any = None
    async for item in leader.stream("21 + 21?", pool=options.pop("pool", ct.Pool.of(double)), **options):
        if isinstance(item, TextDelta):
            found.append(item)
    assert isinstance(item, ct.Run)
    return found, item


def joined(found: list[TextDelta], kind: str, call_id: str = "") -> str:
    return "".join(delta.text for delta in found if delta.kind == kind and call_id in ("", delta.call_id))


async def test_the_text_of_every_reply_is_told_and_the_answer_alone_beside_it() -> None:
    found, run = await deltas(ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER)))
    assert [joined(found, "text", f"ask.{n}") for n in (1, 2, 3)] == [CALL, FINAL, ANSWER]
    assert joined(found, "answer") == run.answer == "It is 42."
    assert {delta.call_id for delta in found if delta.kind == "answer"} == {"ask.3"}
    assert {delta.speaker for delta in found} == {"orchestrator"}


async def test_thoughts_of_their_own_channel_are_told_as_reasoning() -> None:
    class Thinker(ct.Model):
        async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
            yield ct.Thought("hmm, ")
            yield "<answer>4"
            yield "2</answer>"
            yield ct.Reply("<answer>42</answer>", reasoning="hmm, ")

    found, run = await deltas(ct.Orchestrator(Thinker()))
    assert [(delta.kind, delta.text) for delta in found] == [
        ("reasoning", "hmm, "),
        ("text", "<answer>4"),
        ("answer", "4"),
        ("text", "2</answer>"),
        ("answer", "2"),
    ]
    assert run.answer == "42"


async def test_a_repeated_attempt_has_a_higher_number_so_that_its_listener_begins_again() -> None:
    class Flaky(ct.Model):
        times = 0

        async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
            self.times += 1
            yield "<answer>"
            if self.times == 1:
                raise ct.ProviderError("busy", failure=ct.FailureClass.MAYBE_EXECUTED)
            yield "42</answer>"
            yield ct.Reply("<answer>42</answer>")

    found, run = await deltas(ct.Orchestrator(Flaky()))
    assert run.answer == "42"
    last = max(delta.attempt for delta in found)
    assert last == 2
    assert "".join(delta.text for delta in found if delta.kind == "text" and delta.attempt == last) == ANSWER.replace(
        "It is 42.", "42"
    )


async def test_text_of_models_that_agents_and_nested_orchestrators_ask_is_told_too() -> None:
    @ct.agent(models=("worker",))
    async def think(ctx: ct.Context[Any], task: str) -> str:
        """Think about a task."""
        return (await ctx.model("worker").chat(task)).text

    worker = ct.ModelSpec("worker", lambda: ScriptedModel("deep thought", CALL.replace("21", "1"), FINAL, ANSWER))
    inner = ct.Orchestrator("worker").as_agent("helper", "Lead a task.")
    calls = (
        '<reasoning>a</reasoning>\n<tool_call>{"name": "think", "arguments": {"task": "t"}}</tool_call>',
        '<reasoning>a</reasoning>\n<tool_call>{"name": "helper", "arguments": {"task": "t"}}</tool_call>',
    )
    leader = ct.Orchestrator(ScriptedModel(*calls, FINAL, "<answer>end</answer>"))
    found, run = await deltas(leader, pool=ct.Pool.of(think, inner, double, worker, worker="worker"))
    assert run.answer == "end"
    assert "deep thought" in joined(found, "text")
    assert "1.1/1" in {delta.call_id for delta in found if delta.speaker == "worker"}
    assert joined(found, "answer") == "end", "the answer of a member is no answer of the run"


async def test_nothing_of_it_is_kept_or_written_into_the_trace(tmp_path: Any) -> None:
    _, run = await deltas(ct.Orchestrator(ScriptedModel(CALL, FINAL, ANSWER)), trace=tmp_path / "run.trace.jsonl")
    assert not any(isinstance(event, TextDelta) for event in run.events)
    assert '"t":"text"' not in (tmp_path / "run.trace.jsonl").read_text()


@pytest.mark.parametrize("listening", [False, True])
async def test_models_are_asked_for_streams_only_where_somebody_wants_text(listening: bool) -> None:
    class Both(ct.Model):
        streamed = 0

        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            return ct.Reply(ANSWER)

        async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
            self.streamed += 1
            yield ct.Reply(ANSWER)

    model = Both()
    heard: list[Any] = []
    handle = ct.Orchestrator(model).start("q", pool=ct.Pool.of(double), on_event=heard.append, stream_text=listening)
    await handle
    assert model.streamed == (1 if listening else 0)


@pytest.mark.parametrize(
    ("strategy", "replies"),
    [
        ("serial-calls", ['<tool_call>\n{"name": "answer", "arguments": {"text": "It \\"is\\" 42."}}\n</tool_call>']),
        ("serial-calls", ['<answer>It "is" 42.</answer>']),
        ("parallel-rounds", [FINAL, 'It "is" 42.']),
        ("dependency-plan", ['<think>so</think>\n<answer>It "is" 42.</answer>']),
        ("dependency-plan", ['<think>so</think>\n<answer>["It \\"is\\" 42."]</answer>']),
        (AgentGraph(dom="low"), ['<answer><![CDATA[It "is" 42.]]></answer>']),
    ],
)
async def test_each_strategy_tells_its_answer_in_its_own_form(strategy: Any, replies: list[str]) -> None:
    found, run = await deltas(ct.Orchestrator(ScriptedModel(*replies), strategy), pool=ct.Pool.of(double, search))
    assert joined(found, "answer") == run.answer == 'It "is" 42.'
    assert {delta.call_id for delta in found if delta.kind == "answer"} == {f"ask.{len(replies)}"}


NATIVE = ct.Reply("", (ct.ToolCall("answer", {"text": "It is 42."}),))
GRAPH = (
    "<agent><agent_id>a</agent_id><agent_name>think</agent_name><required_arguments><task>x</task>"
    "</required_arguments></agent>"
)


@pytest.mark.parametrize(
    ("strategy", "replies"),
    [
        (RoleWorkflow((Role("solver", "{question}"),), Agree("solver.value", "solver.value")), ["It is 42."]),
        ("serial-calls", [NATIVE]),
        ("serial-calls", ['<tool_call>{"arguments": {"text": "It is 42."}, "name": "answer"}</tool_call>']),
        ("agent-graph", [GRAPH]),
    ],
)
async def test_an_answer_that_was_not_told_while_it_was_written_is_told_at_the_end(
    strategy: Any, replies: list[Any]
) -> None:
    @ct.agent
    async def think(task: str) -> str:
        """Think about a task."""
        return "It is 42."

    found, run = await deltas(ct.Orchestrator(ScriptedModel(*replies), strategy), pool=ct.Pool.of(think, search))
    assert run.answer == "It is 42.", run.detail
    assert [(delta.call_id, delta.text) for delta in found if delta.kind == "answer"] == [("answer", "It is 42.")]


async def test_an_answer_with_references_is_told_again_with_what_they_stand_for() -> None:
    strategy = ct.ParallelRounds(references=True)
    found, run = await deltas(ct.Orchestrator(ScriptedModel(CALL, FINAL, "<answer>It is ${1.1}.</answer>"), strategy))
    assert run.answer == "It is 42."
    assert joined(found, "answer", "answer") == run.answer


async def test_of_a_typed_answer_the_json_text_of_the_last_try_is_told() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    model = ScriptedModel("<answer>It is 42.</answer>", '{"n": "many"}', '{"n": 42}')
    found, run = await deltas(ct.Orchestrator(model, answer_type=schema))
    assert (run.output, run.answer) == ({"n": 42}, '{"n": 42}')
    told = {call_id: joined(found, "answer", call_id) for call_id in ("ask.1", "answer.1", "answer.2", "answer")}
    assert told == {"ask.1": "It is 42.", "answer.1": '{"n": "many"}', "answer.2": '{"n": 42}', "answer": ""}
