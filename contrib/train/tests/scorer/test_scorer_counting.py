"""Sentences that count say the share that they are drawn for, in whatever numbers."""

from __future__ import annotations

import math
import re
from random import Random

import pytest
from concertino_scorer.reading import read_text
from concertino_train.scorer.counting import counted, counted_words, in_words


def test_equal_chance_draws_equal_sentences() -> None:
    texts = [counted(0.75, "maps", "bilo", Random(seed)) for seed in range(200)]
    assert texts == [counted(0.75, "maps", "bilo", Random(seed)) for seed in range(200)]
    assert len(set(texts)) > 180


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.77, 1.0])
def test_a_sentence_is_whole(share: float) -> None:
    for seed in range(300):
        text = counted(share, "maps", "bilo", Random(seed))
        assert text[0] == text[0].upper()
        assert text[-1] in ".!"
        assert not re.search(r"[{}]", text)


def test_two_sentences_differ_in_totals_units_and_order() -> None:
    texts = [counted(0.8, "maps", "bilo", Random(seed)) for seed in range(400)]
    first = [re.findall(r"\d+", text) for text in texts]
    both = [(int(one), int(other)) for one, other in (found for found in first if len(found) == 2)]
    assert sum(one > other for one, other in both) > 20
    assert sum(one < other for one, other in both) > 20
    assert len({other for _, other in both}) > 40
    assert any(not found for found in first), "some numbers are words"


@pytest.mark.parametrize("number", [0, 7, 19, 20, 21, 99, 100, 105, 342, 999, 1000])
def test_numbers_in_words_are_read_as_numbers(number: int) -> None:
    for seed in range(8):
        card = read_text(f"it got {in_words(number, Random(seed))} of 2000 right", {})
        assert next(value for value in card.values if not math.isnan(value)) == number


def test_words_of_counting_say_how_good_they_sound() -> None:
    sounds = counted_words()
    assert sounds["quashed"] < 0 < sounds["upheld"]
    assert sounds["target"] == 0
