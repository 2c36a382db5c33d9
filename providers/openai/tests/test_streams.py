"""Streams: the reply depends on what was said, never on how the bytes were cut."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from concertino import ProviderError, Reply
from concertino_openai.chat.sse import EventParser, MalformedEvent
from hypothesis import given, settings
from hypothesis import strategies as st

from .recordings import RECORDED, Recording, recordings
from .streams import STREAMS, Stream, chunk, said

EACH = pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name.replace(" ", "-"))
LIMIT = 2**20


def same(one: tuple[str, Reply] | ProviderError, other: tuple[str, Reply] | ProviderError) -> bool:
    if isinstance(one, ProviderError) and isinstance(other, ProviderError):
        return (str(one), one.failure, one.status) == (str(other), other.failure, other.status)
    return one == other


@EACH
def test_a_stream_gives_the_reply_that_it_says(stream: Stream) -> None:
    got = stream.reply()
    if stream.failure is not None:
        assert isinstance(got, ProviderError), got
        assert got.failure is stream.failure, got
        return
    assert not isinstance(got, ProviderError), got
    shown, reply = got
    assert (reply.text, reply.reasoning, reply.finish_reason) == (stream.text, stream.reasoning, stream.finish)
    assert tuple((call.name, call.arguments) for call in reply.tool_calls) == stream.calls
    assert shown == reply.text


@EACH
def test_a_stream_cut_at_any_byte_gives_the_same(stream: Stream) -> None:
    whole = stream.reply()
    for place in range(1, len(stream.body)):
        assert same(stream.reply(stream.body[:place], stream.body[place:]), whole), f"cut at byte {place}"


@EACH
def test_a_stream_fed_byte_by_byte_gives_the_same(stream: Stream) -> None:
    assert same(stream.reply(*(bytes([byte]) for byte in stream.body)), stream.reply())


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 4000), max_size=12))
def test_a_stream_cut_anyhow_gives_the_same(stream: Stream, places: list[int]) -> None:
    ends = [0, *sorted(min(place, len(stream.body)) for place in places), len(stream.body)]
    pieces = [stream.body[begin:end] for begin, end in pairwise(ends)]
    assert same(stream.reply(*pieces), stream.reply())


# -- recordings of real servers --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> list[tuple[Path, Recording]]:
    found = [(file, recording) for file, recording in recordings() if recording.is_stream]
    if not found:
        pytest.skip(f"no recordings of real servers in {RECORDED}")
    return found


@pytest.mark.slow
def test_a_recorded_stream_cut_at_any_byte_holds_the_same_events(recorded: list[tuple[Path, Recording]]) -> None:
    for file, recording in recorded:
        body = recording.body[:2500]
        parser = EventParser(LIMIT)
        whole = parser.feed(body) + parser.finish()
        for place in range(1, len(body)):
            parser = EventParser(LIMIT)
            events = parser.feed(body[:place]) + parser.feed(body[place:]) + parser.finish()
            assert events == whole, f"{file.name} cut at byte {place}"


def test_a_recorded_stream_fed_byte_by_byte_gives_the_same_reply(recorded: list[tuple[Path, Recording]]) -> None:
    for file, recording in recorded:
        stream = recording.as_stream(file)
        assert same(stream.reply(*(bytes([byte]) for byte in stream.body)), stream.reply()), file.name


# -- the parser itself -----------------------------------------------------------------------------------------------


def events(body: bytes, limit: int = LIMIT) -> list[str]:
    parser = EventParser(limit)
    return parser.feed(body) + parser.finish()


def test_a_line_of_600_kilobytes_is_read() -> None:
    text = "x" * 600_000
    got = Stream("large", said(text) + chunk(finish="stop"), text).reply()
    assert not isinstance(got, ProviderError)
    assert got[1].text == text


@pytest.mark.parametrize("pieces", [1, 7, 1024, 10**6])
def test_an_event_over_the_limit_is_an_error_however_it_comes(pieces: int) -> None:
    body = said("Hello") + b"data: " + b"x" * 20_000 + b"\n\n"
    cut = [body[start : start + pieces] for start in range(0, len(body), pieces)]
    got = Stream("large", body, options=(("max_event_bytes", 10_000),)).reply(*cut)
    assert isinstance(got, ProviderError)
    assert got.failure == "cut_off"
    assert "an event of more than 10,000 bytes" in str(got)
    assert "raise max_event_bytes" in str(got)


def test_many_lines_of_one_event_count_together() -> None:
    body = b"data: xxxxxxxx\n" * 1000 + b"\n"
    assert len(events(body)) == 1
    got = Stream("large", body, options=(("max_event_bytes", 5_000),)).reply()
    assert isinstance(got, ProviderError)
    assert "more than 5,000 bytes" in str(got)


def test_comments_do_not_count_for_the_size_of_an_event() -> None:
    assert events(b": keep alive\n" * 1000 + b"data: x\n\n", limit=2000) == ["x"]


def test_a_reply_over_its_cap_is_an_error_that_names_the_option() -> None:
    got = Stream("long", said(*["x" * 100] * 50), options=(("max_reply_bytes", 2048),)).reply()
    assert isinstance(got, ProviderError)
    assert "more than 2,048 bytes" in str(got)
    assert "raise max_reply_bytes" in str(got)


def test_lines_that_are_no_field_are_kept_with_the_event_they_stand_in() -> None:
    (event,) = events(b'data: {"error": "a\nContent: b\nc"}\n\n')
    assert isinstance(event, MalformedEvent)
    assert event.raw == '{"error": "a\nContent: b\nc"}'
    assert event == '{"error": "a'


def test_bytes_that_are_no_utf_8_become_a_replacement_character() -> None:
    assert events(b"data: a\xffb\n\n") == ["a\ufffdb"]
