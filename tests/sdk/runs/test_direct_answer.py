"""A model alone: where a pool has nothing to call, the question is one request, and its text is the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, assert_type

import concertino as ct
import pytest
from concertino.core.events import TextDelta
from concertino.core.provider_error import ProviderError
from concertino.strategies.direct_answer import DirectAnswer
from concertino.testing import ScriptedModel
from pydantic import BaseModel


class Bill(BaseModel):
    owner: str
    amount: float


@dataclass
class Refund:
    reason: str


async def test_without_a_pool_the_question_is_the_one_request_and_its_text_the_answer() -> None:
    model = ScriptedModel("<think>a greeting</think>\n\nHello to you.")
    run = await ct.Orchestrator(model).run("Hello!")
    assert (run.answer, run.stop, run.setup["strategy"]) == ("Hello to you.", "answered", {"name": "direct-answer"})
    assert model.requests[0].messages[0] == ct.Message("user", "Hello!")
    assert len(model.requests) == 1
    assert ct.replay(run.trace).answer == "Hello to you."


async def test_instructions_history_and_deps_work_without_a_pool() -> None:
    model = ScriptedModel("Ada.", "Ada, as I said.")
    leader = ct.Orchestrator(model, instructions=lambda ctx: f"You are {ctx.deps}.")
    first = await leader.run("Who are you?", deps="Ada")
    second = await leader.run("Again?", deps="Ada", history=first)
    assert second.answer == "Ada, as I said."
    asked = [(message.role, message.text) for message in model.requests[1].messages[:4]]
    assert asked == [
        ("system", "# Instructions\nYou are Ada."),
        ("user", "Who are you?"),
        ("assistant", "Ada."),
        ("user", "Again?"),
    ]


async def test_an_empty_text_is_asked_for_again_once() -> None:
    assert (await ct.Orchestrator(ScriptedModel("", "Seven.")).run("What?")).answer == "Seven."
    run = await ct.Orchestrator(ScriptedModel("", "<think>hm")).run("What?")
    assert (run.answer, run.stop, run.detail) == (None, "format", "2 texts in a row held no answer")


async def test_the_pieces_of_the_answer_come_as_they_are_written() -> None:
    model = ScriptedModel("<think>so</think>Seven and eight and nine.")
    events = [event async for event in ct.Orchestrator(model).stream("What?")]
    pieces = [event.text for event in events if isinstance(event, TextDelta) and event.kind == "answer"]
    assert len(pieces) > 3
    assert "".join(pieces) == "Seven and eight and nine."


# -- typed answers -----------------------------------------------------------------------------------------------------


async def test_a_typed_answer_is_held_to_its_schema_by_the_first_request() -> None:
    model = ScriptedModel('{"owner": "Ada", "amount": 5}')
    run = await ct.Orchestrator(model, answer_type=Bill).run("Whose?")
    assert_type(run.output, Bill | None)
    assert_type(run.require_output(), Bill)
    assert run.output == Bill(owner="Ada", amount=5)
    held = model.requests[0].schema
    assert held is not None
    assert sorted(held["properties"]) == ["amount", "owner"]


async def test_a_server_that_refuses_the_schema_is_asked_without_it_also_when_resumed(tmp_path: Path) -> None:
    refused = ProviderError.from_http(400, "no such schema")
    model = ScriptedModel(refused, '{"owner": 1}', '{"owner": "Ada", "amount": 5}')
    leader = ct.Orchestrator(model, answer_type=Bill)
    run = await leader.run("Whose?", trace=tmp_path / "run.trace.jsonl")
    assert run.output == Bill(owner="Ada", amount=5)
    assert [request.schema is None for request in model.requests] == [False, True, True]
    assert ct.replay(run.trace).answer == run.answer
    again = await ct.Orchestrator(ScriptedModel(), answer_type=Bill).resume(
        tmp_path / "run.trace.jsonl", finished="recall"
    )
    assert again.output == run.output


async def test_a_checker_of_types_knows_what_a_run_gives() -> None:
    text = await ct.Orchestrator(ScriptedModel("x")).run("?")
    assert_type(text.output, Any | None)
    many = await ct.Orchestrator(ScriptedModel('[{"reason": "late"}]'), answer_type=list[Refund]).run("?")
    assert_type(many.output, list[Refund] | None)
    assert many.output == [Refund("late")]
    either = ct.Orchestrator[Bill | Refund](ScriptedModel('{"reason": "late"}'), answer_type=Bill | Refund)
    found = (await either.run("?")).require_output()
    assert_type(found, Bill | Refund)
    assert found == Refund("late")


async def test_an_output_that_is_not_there_is_an_error_with_the_reason() -> None:
    run = await ct.Orchestrator(ScriptedModel("", ""), answer_type=Bill).run("Whose?")
    assert run.output is None
    with pytest.raises(ct.RunError, match=r"without an answer \(format\)"):
        run.require_output()


# -- where it stands back ----------------------------------------------------------------------------------------------


@ct.tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def test_a_pool_with_a_tool_is_led_as_always_and_a_strategy_of_ones_own_is_kept() -> None:
    led = await ct.Orchestrator(ScriptedModel("<answer>3</answer>")).run("1 + 2?", pool=ct.Pool.of(add))
    assert led.setup["strategy"]["name"] == "parallel-rounds"
    alone = await ct.Orchestrator(ScriptedModel("3"), DirectAnswer()).run("1 + 2?", pool=ct.Pool.of(add))
    assert alone.answer == "3"


def test_a_program_without_await_runs_and_resumes(tmp_path: Path) -> None:
    ran = ct.Orchestrator(ScriptedModel("Seven.")).run_sync("What?", trace=tmp_path / "run.trace.jsonl")
    resumed = ct.Orchestrator(ScriptedModel()).resume_sync(tmp_path / "run.trace.jsonl", finished="recall")
    assert ran.answer == resumed.answer == "Seven."


def test_an_agent_has_no_type_of_answer() -> None:
    with pytest.raises(ct.UsageError, match="answer_type: an agent answers in text"):
        ct.Orchestrator("toy/leader", answer_type=Bill).as_agent("boss", "Leads.")


# -- the answer's text alone -------------------------------------------------------------------------------------------


async def test_the_text_of_the_answer_is_streamed_alone_and_adds_up_to_it() -> None:
    model = ScriptedModel([("add", {"a": 1, "b": 2})], "<reasoning>so</reasoning><answer>It is three.</answer>")
    pieces = [piece async for piece in ct.Orchestrator(model).stream_answer("1 + 2?", pool=ct.Pool.of(add))]
    assert len(pieces) > 1
    assert "".join(pieces) == "It is three."


async def test_an_answer_that_is_written_again_goes_on_where_it_stood_or_says_that_it_is_another_one() -> None:
    leader = ct.Orchestrator(BreaksOnce("7", "77"))
    assert [piece async for piece in leader.stream_answer("1 + 2?")] == ["7", "7"]
    with pytest.raises(ct.RunError, match="another one than was streamed"):
        [piece async for piece in ct.Orchestrator(BreaksOnce("8", "77")).stream_answer("1 + 2?")]


async def test_an_answer_with_a_type_is_given_once_it_is_valid() -> None:
    leader = ct.Orchestrator(ScriptedModel("8", "77"), answer_type=Literal[77])
    assert [piece async for piece in leader.stream_answer("1 + 2?")] == ["77"]


class BreaksOnce(ct.Model):
    """Its first connection breaks after some text."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    async def stream(self, request: ct.ChatRequest) -> AsyncIterator[str | ct.Reply]:
        text = self.texts.pop(0)
        yield text
        if self.texts:
            raise ConnectionResetError("the connection broke")
        yield ct.Reply(text)


async def test_a_run_without_an_answer_ends_its_stream_with_the_reason() -> None:
    with pytest.raises(ct.RunError, match="held no answer"):
        [piece async for piece in ct.Orchestrator(ScriptedModel("", "")).stream_answer("1 + 2?")]
