"""From tokens to text: no character is cut, stop texts are found wherever they fall, and pieces add up."""

from __future__ import annotations

from typing import Any

import pytest
from concertino_local.codec.text import Detokenizer, StopScanner, overlap
from concertino_local.codec.vocabulary import Vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st
from local_models import make_tokenizer

VOCABULARY = Vocabulary(make_tokenizer())
IDS = st.lists(st.integers(0, 419), max_size=30)


def pieces_of(ids: list[int]) -> list[str]:
    detokenizer = Detokenizer(VOCABULARY.decode)
    return [*(detokenizer.add(token) for token in ids), detokenizer.flush()]


@settings(deadline=None)
@given(IDS)
def test_pieces_of_any_tokens_add_up_to_their_text(ids: list[int]) -> None:
    assert "".join(pieces_of(ids)) == VOCABULARY.decode(ids)


@settings(deadline=None)
@given(st.text())
def test_no_piece_of_a_readable_text_holds_half_a_character(text: str) -> None:
    pieces = pieces_of(VOCABULARY.encode(text))
    assert "".join(pieces) == text
    assert "\ufffd" in text or not any("\ufffd" in piece for piece in pieces)


def test_a_sign_of_several_tokens_comes_in_one_piece() -> None:
    ids = VOCABULARY.encode("𐐷")
    assert len(ids) == 4
    assert pieces_of(ids) == ["", "", "", "𐐷", ""]


def test_a_character_that_never_ends_is_given_at_the_end() -> None:
    ids = VOCABULARY.encode("ab𐐷")[:-1]
    assert "".join(pieces_of(ids)) == "ab\ufffd"


@given(st.text("ab.", max_size=20), st.lists(st.text("ab.", min_size=1, max_size=4), max_size=3), st.data())
def test_stop_texts_end_the_text_however_it_is_cut(text: str, stops: list[str], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    scanner = StopScanner(stops)
    got = "".join(scanner.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))
    got += scanner.flush()
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    if not scanner.hit:
        assert (got, places) == (text, [])
    else:
        # Of texts that overlap, the one whose end comes first is found first.
        assert any(got == text[:place] for place in places)
        assert not any(stop in got for stop in stops)


def test_nothing_is_given_after_a_stop_text() -> None:
    scanner = StopScanner(["END"])
    assert [scanner.feed("a E"), scanner.feed("ND b"), scanner.feed("c"), scanner.flush()] == ["a ", "", "", ""]


@pytest.mark.parametrize(
    ("text", "mark", "length"),
    [("ab<", "<think>", 1), ("<thin", "<think>", 5), ("<think>", "<think>", 0), ("", "<", 0)],
)
def test_an_overlap_is_the_longest_beginning_of_a_mark(text: str, mark: str, length: int) -> None:
    assert overlap(text, mark) == length


def test_a_lone_surrogate_is_counted_like_any_sign() -> None:
    from concertino_local.codec.vocabulary import clean

    assert clean("a\ud800b") == "a\ufffdb"
    assert clean("𐐷") == "𐐷"
    assert VOCABULARY.encode(clean("\ud800"))


def test_a_slow_tokenizer_is_used_through_its_own_methods() -> None:
    class Slow:
        """A tokenizer without a back end in Rust."""

        backend_tokenizer = None

        def encode(self, text: str, **_: Any) -> list[int]:
            return [ord(sign) for sign in text]

        def decode(self, ids: list[int], **_: Any) -> str:
            return "".join(map(chr, ids))

        def get_vocab(self) -> dict[str, int]:
            return {"a": 97}

    vocabulary = Vocabulary(Slow())
    assert vocabulary.decode(vocabulary.encode("abc")) == "abc"
    assert vocabulary.identity == '{"a": 97}'
