"""`ScriptedModel`: what a turn may be, and that a script is spoken exactly."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from concertino import ChatRequest, Message, Orchestrator, Pool, Reply, ToolCall, Usage
from concertino.strategies.parallel_rounds.format import is_strict, read_round
from concertino.testing import ScriptedModel, fake_tool


def ask(model: ScriptedModel, text: str = "hello") -> Reply:
    return asyncio.run(model.chat(ChatRequest([Message("user", text)])))


def test_a_text_is_answered_as_a_reply_with_usage() -> None:
    reply = ask(ScriptedModel("four words of text"))
    assert reply.text == "four words of text"
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0


def test_a_reply_is_answered_as_it_is() -> None:
    given = Reply("x", usage=Usage(input_tokens=7, output_tokens=9), finish_reason="length")
    assert ask(ScriptedModel(given)) is given


def test_calls_are_written_in_the_format_of_a_round() -> None:
    reply = ask(ScriptedModel([("add", {"a": 1}), ("sub", {"b": 2})]))
    assert is_strict(reply.text)
    assert [(call.name, call.arguments) for call in read_round(reply).calls] == [("add", {"a": 1}), ("sub", {"b": 2})]


def test_calls_can_be_native() -> None:
    reply = ask(ScriptedModel([("add", {"a": 1})], native=True))
    assert reply.tool_calls == (ToolCall("add", {"a": 1}, "call_1"),)
    assert reply.finish_reason == "tool_calls"
    assert reply.text == ""


@pytest.mark.parametrize("turn", [TimeoutError("down"), TimeoutError])
def test_an_exception_is_raised(turn: Any) -> None:
    with pytest.raises(TimeoutError):
        ask(ScriptedModel(turn))


def test_a_function_sees_the_request_and_gives_any_turn() -> None:
    async def later(request: ChatRequest) -> str:
        return request.messages[-1].text.upper()

    assert ask(ScriptedModel(later), "loud").text == "LOUD"
    assert ask(ScriptedModel(lambda request: Reply(request.messages[-1].text)), "same").text == "same"
    with pytest.raises(ValueError, match="from the function"):
        ask(ScriptedModel(lambda request: ValueError("from the function")))


def test_a_turn_of_another_kind_is_named() -> None:
    with pytest.raises(TypeError, match=r"turn 1 is 5; expected a text"):
        ask(ScriptedModel(5))  # type: ignore[arg-type]


def test_requests_are_remembered_in_order() -> None:
    model = ScriptedModel("a", "b")
    ask(model, "first")
    ask(model, "second")
    assert [request.messages[0].text for request in model.requests] == ["first", "second"]


def test_an_unexpected_request_fails_and_shows_its_last_message() -> None:
    model = ScriptedModel("only one")
    ask(model)
    with pytest.raises(AssertionError, match=r"request 2 came, but 1 turns were scripted(.|\n)*user: one more\?"):
        ask(model, "one more?")
    with pytest.raises(AssertionError, match="request 2 came"):
        model.assert_done()


def test_an_unexpected_request_that_a_run_swallowed_is_still_found_at_the_end() -> None:
    pool = Pool.of(fake_tool("add", returns=3))
    with pytest.raises(AssertionError, match="request 2 came"), ScriptedModel([("add", {})]) as model:
        Orchestrator(model).run_sync("?", pool=pool)


def test_turns_left_over_fail_and_the_next_one_is_shown() -> None:
    model = ScriptedModel("used", "left over", "and this")
    ask(model)
    with pytest.raises(
        AssertionError, match=r"2 of 3 scripted turns were never asked for; the next one is 'left over'"
    ):
        model.assert_done()


def test_a_script_spoken_to_its_end_is_done() -> None:
    with ScriptedModel("used") as model:
        ask(model)
    assert model.left == 0


async def test_the_async_context_manager_checks_too() -> None:
    with pytest.raises(AssertionError, match="never asked for"):
        async with ScriptedModel("unused"):
            pass


def test_an_error_in_the_block_is_not_covered_by_left_over_turns() -> None:
    with pytest.raises(ZeroDivisionError), ScriptedModel("unused"):
        _ = 1 / 0


def test_a_script_that_is_not_strict_repeats_its_last_turn_and_may_be_left() -> None:
    with ScriptedModel("a", "b", "c", strict=False) as model:
        assert ask(model).text == "a"
    model = ScriptedModel("a", "b", strict=False)
    assert [ask(model).text for _ in range(4)] == ["a", "b", "b", "b"]
    model.assert_done()


async def test_turns_are_used_in_the_order_in_which_requests_arrive() -> None:
    async def slow(request: ChatRequest) -> str:
        await asyncio.sleep(0.02)
        return "slow"

    model = ScriptedModel(slow, "quick")
    replies = await asyncio.gather(*(model.chat(ChatRequest([Message("user", "?")])) for _ in range(2)))
    assert [reply.text for reply in replies] == ["slow", "quick"]


def test_a_scripted_run_ends_with_its_answer() -> None:
    add = fake_tool("add", returns=3)
    script = [[("add", {"a": 1, "b": 2})], [("final_answer", {})], "<answer>3</answer>"]
    with ScriptedModel(*script) as model:
        run = Orchestrator(model).run_sync("1 + 2?", pool=Pool.of(add))
    assert run.answer == "3"
    assert add.calls == [{"a": 1, "b": 2}]
