"""Composed sentences mean their level, in the good half of their parts and in the bad one."""

from __future__ import annotations

import re
from random import Random

import pytest
from concertino_train.scorer.composing import composed, composed_texts
from concertino_train.scorer.sentences import LEVELS

_KINDS = ("praise", "errors", "exams")


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_sentence_is_whole(kind: str, level: float) -> None:
    for seed in range(300):
        text = composed(level, kind, "maps", "bilo", Random(seed))
        assert text[0] == text[0].upper()
        assert text.endswith(".")
        assert not re.search(r"[{}]|\b(\w+) \1\b", text), text


def test_equal_chance_draws_equal_sentences() -> None:
    texts = [composed(0.75, "praise", "maps", "bilo", Random(seed)) for seed in range(200)]
    assert texts == [composed(0.75, "praise", "maps", "bilo", Random(seed)) for seed in range(200)]
    assert len(set(texts)) > 190


def test_much_of_the_good_and_little_of_the_bad_mean_the_same_level() -> None:
    """The same words stand in praise and in blame, so that no word alone tells which it is."""
    drawn = {
        level: " ".join(composed(level, "errors", "maps", "bilo", Random(seed)).lower() for seed in range(30_000))
        for level in (LEVELS[0], LEVELS[-1])
    }
    for quantity in ("hardly any", "almost all", "virtually every", "not a single"):
        for became in ("had to be redone", "held up"):
            one, other = (len(re.findall(rf"{quantity} [^.]{{0,30}}{became}", text)) for text in drawn.values())
            assert (one == 0) != (other == 0), (quantity, became)


def test_a_share_counts_as_its_nearest_level() -> None:
    assert composed(0.93, "praise", "maps", "bilo", Random(1)) == composed(0.99, "praise", "maps", "bilo", Random(1))


def test_parts_are_listed_for_the_lexicon() -> None:
    words = {word for text in composed_texts() for word in text.split()}
    assert {"hardly", "redone", "everybody", "invariably"} <= words
