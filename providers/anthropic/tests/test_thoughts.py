"""Thoughts: they go back as they came while their conversation is the same, and not at all once it was edited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from concertino import ChatRequest, Message, Reply, Sampling
from concertino_anthropic.client import AnthropicModel

from .asking import ADD, HAIKU, OPUS, asked, request
from .stand_in import StandIn, Turn, call, stand_in, text, thinking

SYSTEM = Message("system", "Be brief.")
QUESTION = Message("user", "What is 2 + 3?")
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgB"}
CALLING = Turn([thinking("Add."), text("I add."), REDACTED, call("add", {"a": 2, "b": 3})], "tool_use")


async def first_turn(model: AnthropicModel) -> list[Message]:
    """The conversation after a reply that thought and called, and after the result of its call."""
    asked = [SYSTEM, QUESTION]
    reply = await model.chat(ChatRequest(asked, [ADD]))
    assert reply.reasoning == "Add."
    return [*asked, stored(reply), Message("tool", "5", call_id=reply.tool_calls[0].id)]


def stored(reply: Reply) -> Message:
    """A reply as a message that was written down and read again."""
    return Message.from_json(Message.of(Reply.from_json(reply.to_json())).to_json())


def thoughts(body: dict[str, Any]) -> list[str]:
    return [block["type"] for message in body["messages"] for block in message["content"] if "think" in block["type"]]


async def test_thoughts_and_signatures_go_back_as_they_came() -> None:
    async with (
        stand_in(CALLING, Turn([thinking("Done."), text("5")]), Turn([text("Yes.")])) as server,
        asked(server) as model,
    ):
        messages = await first_turn(model)
        answer = await model.chat(ChatRequest(messages, [ADD]))
        messages = [*messages, stored(answer), Message("user", "Sure?")]
        await model.chat(ChatRequest(messages, [ADD]))
    kinds = [block["type"] for block in server.bodies[1]["messages"][1]["content"]]
    assert kinds == ["thinking", "text", "redacted_thinking", "tool_use"]
    assert server.bodies[1]["messages"][1]["content"][0]["thinking"] == "Add."
    assert server.bodies[1]["messages"][1]["content"][2] == REDACTED
    assert thoughts(server.bodies[2]) == ["thinking", "redacted_thinking", "thinking"]
    assert server.refused == []


async def test_what_is_told_of_thoughts_may_be_left_out_and_they_still_go_back() -> None:
    async with stand_in(CALLING, Turn([text("5")])) as server, asked(server, display="omitted") as model:
        reply = await model.chat(ChatRequest([QUESTION], [ADD]))
        assert reply.reasoning == ""
        result = Message("tool", "5", call_id=reply.tool_calls[0].id)
        await model.chat(ChatRequest([QUESTION, Message.of(reply), result], [ADD]))
    assert thoughts(server.bodies[1]) == ["thinking", "redacted_thinking"]


def other_system(messages: list[Message]) -> ChatRequest:
    return ChatRequest([Message("system", "Be verbose."), *messages[1:]], [ADD])


def other_question(messages: list[Message]) -> ChatRequest:
    return ChatRequest([messages[0], Message("user", "What is 2 + 4?"), *messages[2:]], [ADD])


def other_tools(messages: list[Message]) -> ChatRequest:
    return ChatRequest(messages, [ADD, {**ADD, "function": {**ADD["function"], "name": "more"}}])


def no_tools(messages: list[Message]) -> ChatRequest:
    return ChatRequest(messages)


def with_a_schema(messages: list[Message]) -> ChatRequest:
    return ChatRequest(messages, schema={"type": "object", "properties": {"n": {"type": "integer"}}})


def other_words(messages: list[Message]) -> ChatRequest:
    return ChatRequest([*messages[:2], replace(messages[2], text="I subtract."), messages[3]], [ADD])


def shortened(messages: list[Message]) -> ChatRequest:
    said = messages[2]
    extra = {**said.extra, "blocks": said.extra["blocks"]}
    return ChatRequest([*messages[:2], replace(said, text="", extra=extra), messages[3]], [ADD])


@pytest.mark.parametrize(
    "edit", [other_system, other_question, other_tools, no_tools, with_a_schema, other_words, shortened]
)
async def test_an_edited_conversation_is_sent_without_the_thoughts_that_the_api_would_refuse(edit: Any) -> None:
    async with (
        stand_in(CALLING, Turn([thinking("New."), text("{}")]), Turn([text("{}")])) as server,
        asked(server) as model,
    ):
        messages = await first_turn(model)
        edited = edit(messages)
        answer = await model.chat(edited)
        assert thoughts(server.bodies[1]) == []
        # What is thought from now on belongs to the edited conversation, and goes back with it.
        await model.chat(replace(edited, messages=[*edited.messages, Message.of(answer), Message("user", "?")]))
    assert thoughts(server.bodies[2]) == ["thinking"]
    assert server.refused == []


async def test_the_stand_in_refuses_a_thought_of_another_conversation() -> None:
    async with stand_in(CALLING) as server, asked(server) as model:
        messages = await first_turn(model)
        writer = model._writer
        body = writer.write(ChatRequest(messages, [ADD])).body
        body["system"] = [{"type": "text", "text": "Be verbose."}]
        transport = await model._opened()
        from concertino import ProviderError
        from concertino_anthropic.reply import ReplyFold

        with pytest.raises(ProviderError, match="bound to a different conversation"):
            async for _ in transport.pieces(body, "", ReplyFold(model.settings, "")):
                pass


async def test_thoughts_of_another_model_are_left_out() -> None:
    async with (
        stand_in(CALLING, Turn([text("5")])) as server,
        asked(server) as opus,
        asked(server, model="claude-sonnet-5-5") as sonnet,
    ):
        messages = await first_turn(opus)
        await sonnet.chat(ChatRequest(messages, [ADD]))
    assert thoughts(server.bodies[1]) == []


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        (OPUS, {}, {"type": "adaptive", "display": "summarized"}),
        (OPUS, {"display": "omitted"}, {"type": "adaptive", "display": "omitted"}),
        ("claude-sonnet-5-5", {"thinking": "between_tools"}, {"type": "between_tools"}),
        ("claude-sonnet-4-6", {}, None),
        ("claude-sonnet-4-6", {"thinking": "adaptive"}, {"type": "adaptive", "display": "summarized"}),
        ("claude-sonnet-5", {"thinking": "disabled"}, {"type": "disabled"}),
        (HAIKU, {}, None),
        (HAIKU, {"thinking": 1500}, {"type": "enabled", "budget_tokens": 1500, "display": "summarized"}),
        (HAIKU, {"thinking": 5000}, {"type": "enabled", "budget_tokens": 1999, "display": "summarized"}),
        ("claude-unheard-of", {}, None),
    ],
)
async def test_a_model_is_asked_to_think_as_it_can(model: str, options: dict[str, Any], sent: Any) -> None:
    async with stand_in() as server, asked(server, model=model, **options) as asked_model:
        await asked_model.chat(request("?", sampling=Sampling(max_tokens=2000)))
    assert server.bodies[0].get("thinking") == sent
    assert server.refused == []


async def test_a_budget_for_thoughts_that_does_not_fit_into_the_reply_is_left_out() -> None:
    async with stand_in() as server, asked(server, model=HAIKU, thinking=2000) as model:
        await model.chat(request("?", sampling=Sampling(max_tokens=1024)))
    assert "thinking" not in server.bodies[0]


async def test_a_turn_that_lost_its_thoughts_goes_on_without_a_budget_for_them() -> None:
    async with stand_in(CALLING, Turn([text("5")])) as server, asked(server, model=HAIKU, thinking=2000) as model:
        messages = await first_turn(model)
        await model.chat(other_question(messages))
    assert ["thinking" in body for body in server.bodies] == [True, False]


async def test_effort_goes_beside_a_schema() -> None:
    async with stand_in(Turn([text("{}")])) as server, asked(server, effort="low") as model:
        await model.chat(with_a_schema([QUESTION]))
    assert server.bodies[0]["output_config"]["effort"] == "low"
    assert server.bodies[0]["output_config"]["format"]["type"] == "json_schema"


@pytest.fixture
async def server() -> Any:
    async with stand_in() as server:
        yield server


async def test_a_reply_without_thoughts_keeps_nothing_to_send_back(server: StandIn) -> None:
    async with asked(server) as model:
        reply = await model.chat(request("?"))
    assert set(reply.extra) == {"id", "model", "request_id"}
