"""A reply is the same whether it comes whole or in chunks; and what a server says of itself is understood."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from concertino import ChatRequest, Message, Reply, Sampling, Usage
from concertino_openai.chat.accumulator import ReplyAccumulator
from concertino_openai.chat.stream import read_plain
from concertino_openai.options import OpenAISettings
from hypothesis import given, settings
from hypothesis import strategies as st

from .recordings import RECORDED, recordings
from .streams import STREAMS, TOOL, Stream, chunk, numbers, said, sse, usage

SETTINGS = OpenAISettings.of({"server": "vllm", "model": "m"}, "test")


def plain(message: dict[str, Any], tools: bool = False, settings: OpenAISettings = SETTINGS, **more: Any) -> Reply:
    """The reply of a whole answer."""
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    choice |= {key.removeprefix("choice_"): more.pop(key) for key in list(more) if key.startswith("choice_")}
    answer = {"id": "c1", "model": "m", "choices": [choice], **more}
    fold = ReplyAccumulator(settings.dialect, tools, settings.endpoint)
    shown = read_plain(json.dumps(answer).encode(), fold, settings)
    last, reply = fold.reply(ChatRequest([Message("user", "hi")], tools=[TOOL] if tools else []), len)
    assert shown + last == reply.text
    return reply


def streamed(body: bytes, tools: bool = False, server: str = "vllm") -> Reply:
    got = Stream("test", body, server=server, tools=tools).reply()
    assert not isinstance(got, Exception), got
    assert got[0] == got[1].text
    return got[1]


def said_of(reply: Reply) -> tuple[Any, ...]:
    """What a reply says, apart from how its arguments are laid out."""
    calls = []
    for call in reply.tool_calls:
        try:
            calls.append((call.name, json.loads(str(call.arguments))))
        except ValueError:
            calls.append((call.name, call.arguments))
    return reply.text, calls, reply.reasoning


# -- plain and streamed ----------------------------------------------------------------------------------------------

texts = st.text(st.sampled_from("ab \n<>/é世"), max_size=20)
pieces = st.lists(
    st.one_of(
        texts,
        st.sampled_from(["<think>", "</think>", "<tool_call>", "</tool_call>", '{"name": "add", "arguments": ', "{}}"]),
    ),
    max_size=8,
)


@settings(max_examples=400, deadline=None)
@given(pieces, st.lists(st.integers(0, 200), max_size=10), st.booleans(), st.sampled_from(["", "Hm.", " \n"]))
def test_a_text_gives_the_same_reply_whole_and_in_any_pieces(
    parts: list[str], places: list[int], tools: bool, thought: str
) -> None:
    text = "".join(parts)
    ends = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    cut = [text[begin:end] for begin, end in pairwise(ends)]
    whole = plain({"content": text, "reasoning": thought}, tools)
    body = chunk({"reasoning": thought}) + said(*cut) + chunk(finish="stop")
    assert said_of(streamed(body, tools)) == said_of(whole)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["add", "now", "sub"]), st.text(max_size=12)), max_size=4),
    st.lists(st.integers(0, 12), max_size=4),
)
def test_calls_give_the_same_reply_whole_and_in_fragments(calls: list[tuple[str, str]], places: list[int]) -> None:
    whole = [
        {"id": f"id{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    body = b""
    for n, (name, arguments) in enumerate(calls):
        body += chunk({"tool_calls": [{"index": n, "id": f"id{n}", "function": {"name": name, "arguments": ""}}]})
        ends = [0, *sorted(min(place, len(arguments)) for place in places), len(arguments)]
        for begin, end in pairwise(ends):
            body += chunk({"tool_calls": [{"index": n, "function": {"arguments": arguments[begin:end]}}]})
    reply = streamed(body + chunk(finish="tool_calls"), tools=True)
    assert reply.tool_calls == plain({"content": None, "tool_calls": whole}, tools=True).tool_calls
    assert [call.name for call in reply.tool_calls] == [name for name, _ in calls]


@pytest.mark.parametrize("stream", [s for s in STREAMS if s.failure is None], ids=lambda s: s.name.replace(" ", "-"))
def test_a_reply_survives_being_written_down(stream: Stream) -> None:
    got = stream.reply()
    assert not isinstance(got, Exception)
    assert Reply.from_json(json.loads(json.dumps(got[1].to_json()))) == got[1]


def test_recorded_answers_say_the_same_whole_and_streamed() -> None:
    whole: dict[tuple[str, str], Reply] = {}
    compared = 0
    for file, recording in recordings():
        name, _, mode = file.name.removesuffix(".txt").rpartition(".")
        if recording.status != 200:
            continue
        stream = recording.as_stream(file)
        if mode == "plain":
            fold = ReplyAccumulator(stream.settings.dialect, stream.tools, "here")
            read_plain(recording.body, fold, stream.settings)
            whole[file.parent.name, name] = fold.reply(ChatRequest([]), len)[1]
            continue
        known, got = whole.get((file.parent.name, name)), stream.reply()
        if known is not None and not isinstance(got, Exception):
            assert said_of(got[1]) == said_of(known), file
            assert got[1].token_ids == known.token_ids, file
            assert got[1].logprobs == pytest.approx(known.logprobs, abs=1e-4), file
            compared += 1
    if not compared:
        pytest.skip(f"no recordings of real servers in {RECORDED}")


# -- usage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (numbers(5, 3), Usage(input_tokens=5, output_tokens=3)),
        (
            numbers(prompt_tokens_details={"cached_tokens": 4}, completion_tokens_details={"reasoning_tokens": 2}),
            Usage(input_tokens=5, output_tokens=3, cached_tokens=4, reasoning_tokens=2),
        ),
        (numbers(5, 3, prompt_tokens_details=None, cost=0.25), Usage(input_tokens=5, output_tokens=3, usd=0.25)),
        (numbers(5, 3, prompt_cache_hit_tokens=2), Usage(input_tokens=5, output_tokens=3, cached_tokens=2)),
        (
            numbers(prompt_tokens_details={"cached_tokens": 2, "cache_write_tokens": 3}),
            Usage(input_tokens=5, output_tokens=3, cached_tokens=2, cache_write_tokens=3),
        ),
        (
            numbers(prompt_tokens_details={"cached_tokens": 4, "cache_write_tokens": 9}),
            Usage(input_tokens=5, output_tokens=3, cached_tokens=4, cache_write_tokens=1),
        ),
        # thoughts counted beside the reply, and only in the total
        ({"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 20}, Usage(input_tokens=5, output_tokens=15)),
        ({"prompt_tokens": 5, "completion_tokens": None, "cost": "dear"}, Usage(input_tokens=5)),
        (
            numbers(5, 3, prompt_tokens_details={"cached_tokens": 9}, reasoning_tokens=8),
            Usage(input_tokens=5, output_tokens=3, cached_tokens=5, reasoning_tokens=3),
        ),
    ],
)
def test_usage_is_read_in_every_form(reported: dict[str, Any], expected: Usage) -> None:
    assert plain({"content": "x"}, usage=reported).usage == expected
    body = said("x") + chunk(finish="stop") + sse({"choices": [], "usage": reported})
    assert streamed(body).usage == expected


def test_a_usage_that_nobody_told_is_estimated_and_says_so() -> None:
    used = streamed(said("four words are here") + chunk(finish="stop")).usage
    assert used.estimated == 1
    assert used.input_tokens > 0
    assert used.output_tokens == len("four words are here") // 3 + 1
    with_call = streamed(chunk({"tool_calls": [{"index": 0, "function": {"name": "add"}}]}) + chunk(finish="stop"))
    assert with_call.usage.output_tokens > 0


def test_an_estimate_is_never_above_the_bound_of_the_request() -> None:
    fold = ReplyAccumulator(SETTINGS.dialect, False, "here")
    read_plain(json.dumps({"choices": [{"message": {"content": "x" * 300}}]}).encode(), fold, SETTINGS)
    request = ChatRequest([Message("user", "hi")], sampling=Sampling(max_tokens=5))
    assert fold.reply(request, len)[1].usage.output_tokens == 5


def test_what_flowed_before_a_stream_broke_is_counted() -> None:
    stream = Stream("cut", said("Hello", " world"))
    fold = ReplyAccumulator(stream.settings.dialect, False, "here")
    for line in stream.body.split(b"\n\n")[:-1]:
        fold.feed(json.loads(line[6:]))
    used = fold.usage(ChatRequest([Message("user", "hi")]), len)
    assert (used.output_tokens, used.estimated) == (len("Hello world"), 1)


# -- tokens ----------------------------------------------------------------------------------------------------------


def test_tokens_of_chunks_add_up() -> None:
    stream = next(stream for stream in STREAMS if stream.name == "tokens")
    got = stream.reply()
    assert not isinstance(got, Exception)
    reply = got[1]
    assert (reply.token_ids, reply.logprobs) == ((7, 8, 9), (-0.5, -0.25, 0.0))
    assert reply.prompt_token_ids == (1, 2, 3)


def test_unequal_numbers_of_ids_and_log_probabilities_are_given_as_none_and_flagged() -> None:
    reply = plain({"content": "x"}, choice_token_ids=[1, 2], choice_logprobs={"content": [{"logprob": -1.0}]})
    assert (reply.token_ids, reply.logprobs) == (None, None)
    assert reply.extra["uneven_tokens"] == [2, 1]


# -- the odd ones ----------------------------------------------------------------------------------------------------


def test_an_answer_that_stands_in_the_thoughts_becomes_the_text_and_is_flagged() -> None:
    reply = plain({"content": None, "reasoning": "pong"})
    assert (reply.text, reply.reasoning, reply.extra["text_from"]) == ("pong", "", "reasoning")
    assert streamed(chunk({"reasoning": "po"}) + chunk({"reasoning": "ng"}) + chunk(finish="stop")).text == "pong"


def test_thoughts_are_no_answer_where_the_length_ended_them_or_calls_follow() -> None:
    cut = plain({"content": "", "reasoning": "I think that"}, choice_finish_reason="length")
    assert (cut.text, cut.reasoning) == ("", "I think that")
    calls = [{"id": "a", "function": {"name": "add", "arguments": "{}"}}]
    called = plain({"content": None, "reasoning": "I add.", "tool_calls": calls}, tools=True)
    assert (called.text, called.reasoning, called.tool_calls[0].name) == ("", "I add.", "add")


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "length", "whatever"])
def test_calls_are_seen_whatever_the_finish_reason_says(reason: str) -> None:
    calls = [{"id": "a", "function": {"name": "add", "arguments": "{}"}}]
    reply = plain({"content": None, "tool_calls": calls}, tools=True, choice_finish_reason=reason)
    assert (reply.tool_calls[0].name, reply.finish_reason) == ("add", reason)


@pytest.mark.parametrize(("reason", "arguments"), [("length", '{"name": "now", "arguments":'), ("stop", "{}")])
def test_a_call_that_the_length_cut_off_before_its_arguments_is_broken(reason: str, arguments: str) -> None:
    calls = [{"id": "a", "function": {"name": "add"}}, {"id": "b", "function": {"name": "now", "arguments": ""}}]
    reply = plain({"content": None, "tool_calls": calls}, tools=True, choice_finish_reason=reason)
    assert [call.arguments for call in reply.tool_calls] == ["{}", arguments]


def test_calls_in_the_text_do_not_count_twice_where_the_server_read_them_too() -> None:
    calls = [{"id": "a", "function": {"name": "add", "arguments": "{}"}}]
    text = 'I add. <tool_call>{"name": "add", "arguments": {}}</tool_call>'
    reply = plain({"content": text, "tool_calls": calls}, tools=True)
    assert (reply.text, len(reply.tool_calls)) == ("I add.", 1)


def test_opaque_data_is_kept_with_the_endpoint_that_it_belongs_to() -> None:
    signed = {"google": {"thought_signature": "s=="}}
    fragments = [
        {"type": "reasoning.text", "index": 0, "text": "H", "signature": None},
        {"type": "reasoning.text", "index": 0, "text": "m.", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "AbC="},
    ]
    body = chunk({"reasoning_details": fragments[:1]}) + chunk({"reasoning_details": fragments[1:]})
    body += chunk({"content": "Hi", "extra_content": signed}) + chunk(finish="stop")
    reply = streamed(body, server="openrouter")
    assert reply.reasoning == "Hm."
    assert reply.extra["endpoint"] == "https://openrouter.ai/api/v1 m"
    assert reply.extra["opaque"] == {
        "extra_content": signed,
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "text": "Hm.", "signature": "s"},
            {"type": "reasoning.encrypted", "index": 1, "data": "AbC="},
        ],
    }


def test_a_reply_says_what_it_was_answered_as() -> None:
    reply = streamed(said("x") + chunk(finish="stop") + usage())
    assert dict(reply.extra) == {"id": "c1", "model": "m"}
