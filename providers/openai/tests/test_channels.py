"""Channels: whatever way a text is cut, the same comes out of it, and what was shown is never taken back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from concertino_openai.chat.channels import Channels
from concertino_openai.dialects import ThinkStyle
from hypothesis import given, settings
from hypothesis import strategies as st


def taken(pieces: list[str], think: ThinkStyle = "tags", calls: bool = False, stops: tuple[str, ...] = ()) -> Channels:
    channels = Channels(think, calls, stops)
    shown = "".join(map(channels.feed, pieces))
    called = bool(channels.block)
    shown += channels.finish(called)
    assert shown == "".join(channels.shown)
    return channels


def all_of(channels: Channels) -> tuple[str, str, str]:
    return "".join(channels.shown), "".join(channels.thoughts), "".join(channels.block)


@pytest.mark.parametrize(
    ("text", "shown", "thoughts"),
    [
        ("Hello", "Hello", ""),
        ("  Hello ", "  Hello ", ""),
        ("<think>Hm.</think>\n\nHello", "Hello", "Hm."),
        ("\n <think>Hm.</think>Hello", "Hello", "Hm."),
        ("<think>Hm.", "", "Hm."),
        ("<think></think>", "", ""),
        ("Hello <think>Hm.</think>", "Hello <think>Hm.</think>", ""),
        ("<thin", "<thin", ""),
        ("<thinking>", "<thinking>", ""),
        ("", "", ""),
    ],
)
def test_thoughts_stand_at_the_beginning(text: str, shown: str, thoughts: str) -> None:
    assert all_of(taken([text])) == (shown, thoughts, "")
    assert all_of(taken(list(text))) == (shown, thoughts, "")


@pytest.mark.parametrize(
    ("text", "shown"), [("one two", "one "), ("one two three", "one two three"), ("one tw", "one tw"), ("two", "")]
)
def test_a_text_that_stopped_the_reply_is_taken_off_its_end(text: str, shown: str) -> None:
    for calls in (False, True):
        assert "".join(taken(list(text), stops=("two", "x"), calls=calls).shown) == shown


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(["<", "think>", "</think>", "<think>", "<tool_", "call>", " ", "\n", "a", "sto", "p"])),
    st.sets(st.integers(1, 60)),
    st.sampled_from(["tags", "open", "off"]),
    st.booleans(),
    st.sampled_from([(), ("stop",), ("p", "as")]),
)
def test_any_cut_gives_the_same(
    parts: list[str], places: set[int], think: ThinkStyle, calls: bool, stops: tuple[str, ...]
) -> None:
    text = "".join(parts)
    ends = [0, *sorted(place for place in places if place < len(text)), len(text)]
    pieces = [text[begin:end] for begin, end in pairwise(ends)]
    assert all_of(taken(pieces, think, calls, stops)) == all_of(taken([text], think, calls, stops))
