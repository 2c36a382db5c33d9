"""Requests: what a conversation looks like on the wire, and that the documented API takes it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from concertino import Audio, ChatRequest, File, Image, Message, ProviderError, Reply, Sampling, ToolCall
from concertino.text import NAMELESS
from hypothesis import given, settings
from hypothesis import strategies as st

from .asking import ADD, asked, request
from .stand_in import Refused, StandIn, Turn, call, check, stand_in, text

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
PDF = b"%PDF-1.7\n" + b"0" * 20


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    async with stand_in() as server:
        yield server
        assert server.refused == []


async def body_of(server: StandIn, asking: ChatRequest, **options: Any) -> dict[str, Any]:
    async with asked(server, **options) as model:
        await model.chat(asking)
    return server.bodies[-1]


def contents(body: dict[str, Any]) -> list[Any]:
    """Roles and contents of the messages, without cache marks; a single text as itself."""

    def bare(block: dict[str, Any]) -> Any:
        block = {name: value for name, value in block.items() if name != "cache_control"}
        return block["text"] if block["type"] == "text" else block

    return [(message["role"], [bare(block) for block in message["content"]]) for message in body["messages"]]


# -- a round trip with tools -------------------------------------------------------------------------------------------


async def test_tools_are_called_and_their_results_go_back_in_one_message() -> None:
    first = Turn([text("I add."), call("add", {"a": 1}, "toolu_1"), call("add", {"a": 2}, "toolu_2")], "tool_use")
    async with stand_in(first, Turn([text("3")])) as server, asked(server) as model:
        question = Message("user", "?")
        reply = await model.chat(ChatRequest([question], [ADD]))
        assert [(made.name, made.id) for made in reply.tool_calls] == [("add", "toolu_1"), ("add", "toolu_2")]
        results = [Message("tool", "one", call_id="toolu_1"), Message("tool", "", call_id="toolu_2")]
        more = Message("user", "Budget: 3")
        answer = await model.chat(ChatRequest([question, Message.of(reply), *results, more], [ADD]))
    assert (answer.text, answer.finish_reason) == ("3", "stop")
    schema = ADD["function"]["parameters"]
    assert server.bodies[0]["tools"] == [{"name": "add", "description": "Add two integers.", "input_schema": schema}]
    assert contents(server.bodies[1])[2] == (
        "user",
        [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text("one")]},
            {"type": "tool_result", "tool_use_id": "toolu_2"},
            "Budget: 3",
        ],
    )
    assert server.refused == []


async def test_calls_of_another_server_are_sent_in_a_form_that_the_api_takes(server: StandIn) -> None:
    calls = (
        ToolCall("search/web", '{"q": "x"}', "call|1:a"),
        ToolCall("add", '{"a": 2, "b":', ""),
        ToolCall(NAMELESS, "nonsense", ""),
        ToolCall("add", {"a": 1}, ""),
    )
    results = [Message("tool", str(n), call_id="call|1:a" if n == 0 else "") for n in range(4)]
    body = await body_of(server, request("?", Message("assistant", "", calls), *results, tools=[ADD]))
    said = contents(body)
    made = [(each["name"], each["input"]) for each in said[1][1]]
    assert made == [
        ("search_web", {"q": "x"}),
        ("add", {"unreadable": '{"a": 2, "b":'}),
        ("unreadable", {"unreadable": "nonsense"}),
        ("add", {"a": 1}),
    ]
    assert [each["id"] for each in said[1][1]] == [each["tool_use_id"] for each in said[2][1]]


async def test_a_conversation_with_calls_is_taken_where_no_tools_are_offered(server: StandIn) -> None:
    asking = request("?", Message("assistant", "", (ToolCall("add", "{}", "c1"),)), Message("tool", "5", call_id="c1"))
    body = await body_of(server, asking, extra_body={"tool_choice": {"type": "auto"}})
    assert [tool["name"] for tool in body["tools"]] == ["add"]
    assert body["tool_choice"] == {"type": "none"}


async def test_a_choice_of_tools_goes_with_tools_only(server: StandIn) -> None:
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    with_tools = await body_of(server, request("?", tools=[ADD]), extra_body={"tool_choice": choice})
    without = await body_of(server, request("?"), extra_body={"tool_choice": choice})
    assert with_tools["tool_choice"] == choice
    assert "tool_choice" not in without


# -- texts -------------------------------------------------------------------------------------------------------------


async def test_system_messages_at_the_beginning_are_the_system_prompt_and_later_ones_the_users(server: StandIn) -> None:
    messages = (Message("system", "One."), Message("system", " "), Message("system", "Two."), Message("user", "?"))
    body = await body_of(server, request(*messages, Message("assistant", "!"), Message("system", "Three.")))
    assert [block["text"] for block in body["system"]] == ["One.\n\nTwo."]
    assert contents(body) == [("user", ["?"]), ("assistant", ["!"]), ("user", ["Three."])]


async def test_what_holds_no_text_is_no_obstacle(server: StandIn) -> None:
    body = await body_of(server, request(Message("system", ""), "", Message("assistant", " \n"), "\t", "?"))
    assert "system" not in body
    assert contents(body) == [("user", ["(no text)"]), ("user", ["(no text)"]), ("user", ["?"])]
    assert contents(await body_of(server, request(Message("system", "Only this.")))) == [("user", ["(no text)"])]


async def test_a_conversation_that_the_model_begins_is_sent_with_a_message_before_it(server: StandIn) -> None:
    body = await body_of(server, request(Message("system", "Be brief."), Message("assistant", "Hello!"), "?"))
    assert contents(body) == [("user", ["(no text)"]), ("assistant", ["Hello!"]), ("user", ["?"])]


async def test_sampling_that_the_api_no_longer_takes_is_left_out(server: StandIn) -> None:
    sampling = Sampling(temperature=0.0, top_p=0.9, max_tokens=77, stop=("END", " \n"), seed=1, logprobs=True)
    body = await body_of(server, request("?", sampling=sampling))
    assert (body["max_tokens"], body["stop_sequences"]) == (77, ["END"])
    assert not {"temperature", "top_p", "seed", "logprobs"} & set(body)


@pytest.mark.parametrize(
    ("model", "options", "most"),
    [
        ("claude-opus-5-5", {}, 128_000),
        ("claude-haiku-4-5-20251001", {}, 64_000),
        ("claude-unheard-of", {}, 32_000),
        ("claude-opus-5-5", {"max_output": 500}, 500),
    ],
)
async def test_a_reply_is_bounded_by_the_model_where_nobody_bounds_it(
    model: str, options: dict[str, Any], most: int, server: StandIn
) -> None:
    assert (await body_of(server, request("?"), model=model, **options))["max_tokens"] == most


async def test_headers_and_further_fields_go_with_every_request(server: StandIn) -> None:
    headers = {"anthropic-beta": "context-1m-2025-08-07"}
    body = await body_of(server, request("?"), headers=headers, extra_body={"service_tier": "standard_only"})
    assert body["service_tier"] == "standard_only"
    assert server.headers[-1]["anthropic-beta"] == "context-1m-2025-08-07"
    assert server.headers[-1]["anthropic-version"] == "2026-10-21"


# -- attachments -------------------------------------------------------------------------------------------------------


async def test_images_and_documents_stand_before_the_text_that_speaks_of_them(server: StandIn) -> None:
    attached = (
        Image(PNG, name="cat.png"),
        Image("https://example.org/dog.jpg"),
        File(PDF, name="report.pdf"),
        File("https://example.org/paper.pdf"),
        File("Grüße".encode(), name="notes.txt", media_type="text/plain"),
        File(b"{}", name="data.json"),
    )
    body = await body_of(server, request(Message("user", "What is this?", attachments=attached)))
    blocks = contents(body)[0][1]
    assert [block["source"]["type"] for block in blocks[:-1]] == ["base64", "url", "base64", "url", "text", "text"]
    assert [block["type"] for block in blocks[:-1]] == ["image", "image", *["document"] * 4]
    assert blocks[0]["source"]["media_type"] == "image/png"
    assert blocks[2]["title"] == "report.pdf"
    assert blocks[4]["source"] == {"type": "text", "media_type": "text/plain", "data": "Grüße"}
    assert blocks[-1] == "What is this?"


async def test_what_a_tool_shows_stands_in_its_result(server: StandIn) -> None:
    said = Message("assistant", "", (ToolCall("draw", "{}", "c1"),))
    shown = Message("tool", "a cat", call_id="c1", attachments=(Image(PNG, name="cat.png"),))
    body = await body_of(server, request("?", said, shown, tools=[ADD]))
    (result,) = contents(body)[2][1]
    assert [block["type"] for block in result["content"]] == ["text", "image"]


@pytest.mark.parametrize(
    ("attachment", "message"),
    [
        (Audio(b"ID3" + b"0" * 9, name="song.mp3"), "the audio 'song.mp3' is of type audio/mpeg; the API takes images"),
        (Image(b"II*\x00", name="scan.tiff", media_type="image/tiff"), "image 'scan.tiff' is of type image/tiff"),
        (File(b"PK\x03\x04", name="a.zip", media_type="application/zip"), "'a.zip' is of type application/zip"),
        (File(b"\xff\xfe", name="old.txt", media_type="text/plain"), "'old.txt' is no UTF-8 text"),
        (File(b"\xff\xfe", name="thing"), "'thing' is no UTF-8 text"),
    ],
)
async def test_what_the_api_takes_no_form_of_is_refused_before_anything_is_sent(
    attachment: Any, message: str, server: StandIn
) -> None:
    async with asked(server) as model:
        with pytest.raises(ProviderError, match=message) as raised:
            await model.chat(request(Message("user", "?", attachments=(attachment,))))
    assert raised.value.failure == "caller"
    assert server.bodies == []


# -- the prompt cache --------------------------------------------------------------------------------------------------


def marks(body: dict[str, Any]) -> list[str]:
    """Where the prompt is marked."""
    system = ["system" for block in body.get("system", ()) if "cache_control" in block]
    places = enumerate(body["messages"])
    return system + [str(n) for n, each in places for block in each["content"] if "cache_control" in block]


async def test_a_conversation_is_cached_to_its_end_and_a_single_question_to_its_system_prompt(server: StandIn) -> None:
    system = Message("system", "Be brief.")
    alone = await body_of(server, request(system, "?"))
    tools = await body_of(server, request(system, "?", tools=[ADD]))
    later = await body_of(server, request(system, "?", Message("assistant", "!"), "??"))
    assert [marks(alone), marks(tools), marks(later)] == [["system"], ["system", "0"], ["system", "2"]]
    assert alone["system"][0]["cache_control"] == {"type": "ephemeral"}


async def test_the_cache_is_kept_for_an_hour_or_not_at_all_where_that_is_said(server: StandIn) -> None:
    asking = request(Message("system", "Be brief."), "?", tools=[ADD])
    hour = await body_of(server, asking, cache="1h")
    off = await body_of(server, asking, cache="")
    assert hour["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert marks(off) == []


async def test_what_was_read_from_the_cache_and_written_into_it_is_told(server: StandIn) -> None:
    messages = [Message("system", "Be brief. " * 20), Message("user", "How long is a kilometre? " * 20)]
    async with asked(server, model="claude-haiku-5-5") as model:
        replies: list[Reply] = []
        for _ in range(3):
            replies.append(await model.chat(ChatRequest(messages, [ADD])))
            result = Message("tool", "1000 m " * 20, call_id=replies[-1].tool_calls[0].id)
            messages = [*messages, Message.of(replies[-1]), result]
    first, second, third = (reply.usage for reply in replies)
    assert (first.cached_tokens, first.cache_write_tokens) == (0, first.input_tokens)
    assert second.cached_tokens == first.input_tokens
    assert third.cached_tokens == second.input_tokens
    assert second.cached_tokens + second.cache_write_tokens == second.input_tokens


# -- anything ----------------------------------------------------------------------------------------------------------

BLANK = st.sampled_from(["", " ", "\n\t", "\u2028"])
WORDS = st.one_of(BLANK, st.text(max_size=20))
CALLS = st.lists(st.builds(ToolCall, WORDS, st.one_of(WORDS, st.just('{"a": 1}')), st.text(max_size=5)), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Any conversation in which the results of calls follow them."""
    messages = [Message("system", draw(WORDS))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, 3))):
        messages.append(Message("user", draw(WORDS)))
        calls = draw(CALLS)
        # Servers give their calls ids that differ; those without one are numbered by us.
        calls = [
            ToolCall(each.name, each.arguments, f"{each.id}-{n}" if each.id else "") for n, each in enumerate(calls)
        ]
        messages.append(Message("assistant", draw(WORDS), tuple(calls)))
        messages += [Message("tool", draw(WORDS), call_id=each.id) for each in calls]
    return [*messages, Message("user", draw(WORDS))]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(conversations(), st.booleans())
def test_any_conversation_is_written_in_a_form_that_the_api_takes(messages: list[Message], tools: bool) -> None:
    from concertino_anthropic.options import AnthropicSettings
    from concertino_anthropic.request import RequestWriter

    writer = RequestWriter(AnthropicSettings.of({"model": "claude-opus-5-5"}, "test"))
    body = json.loads(json.dumps(writer.write(ChatRequest(messages, [ADD] if tools else [])).body))
    try:
        check(body)
    except Refused as refused:
        raise AssertionError(f"{refused}: {body}") from None
