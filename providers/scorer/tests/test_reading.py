"""Cards as tokens: words by number, numbers with their shares and their place among like ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from concertino_scorer.reading import NUMBER, NUMBER_FEATURES, UNKNOWN, number_features, read_text

WORDS = {
    word: number for number, word in enumerate(["percent", "right", "of", "errors", "in", "tasks", "wrong", "every"], 2)
}
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS) + 2, 16)).astype(np.float32)


def shares(text: str) -> list[float]:
    return [round(share, 3) for share in read_text(text, WORDS).shares if not math.isnan(share)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("12 of 15 right", [0.8, 0.8]),
        ("right in 320/400", [0.8, 0.8]),
        ("83 % right", [0.83]),
        ("83.5% right", [0.835]),
        ("1,250 of 2,500 tasks", [0.5, 0.5]),
        ("version 1.2.3", []),
        ("since 1998", []),
        ("15 of 12", [0.8, 0.8]),
        ("0.83 right, 0.1 wrong", [0.83, 0.1]),
        ("of 15 tasks, 12 right", [0.8, 0.8]),
        ("12 right; 15 wrong", []),
        ("three of twenty-five", [0.12, 0.12]),
        ("a hundred and fifty of two hundred tasks", [0.75, 0.75]),
        ("one in four wrong, and one of the best", [0.25, 0.25]),
        ("a thousand tasks, two hundred fifty-five wrong", [0.255, 0.255]),
        ("twenty nine of fifty", [0.58, 0.58]),
        ("nineteen; eleven; ten", []),
    ],
)
def test_a_number_has_the_share_of_what_it_is_of(text: str, found: list[float]) -> None:
    assert shares(text) == found


def test_thousandths_are_shares() -> None:
    assert [share for share in read_text("950\u2030 right", {"\u2030": 2}).shares if share == share] == [0.95]
    assert [share for share in read_text("950 per mille", {"mille": 2}).shares if share == share] == [0.95]


def test_a_share_says_which_number_is_the_part() -> None:
    assert [role for role in read_text("of 15 tasks, 12 right", WORDS).roles if role] == [-1, 1]
    assert [role for role in read_text("12 of 15", WORDS).roles if role] == [1, -1]


def test_numbers_of_a_sentence_are_fractions_of_the_largest_one() -> None:
    card = read_text("where 0 is wrong and 8 is right in all tasks of every kind in all tasks it shows 6. 100", WORDS)
    assert [share for share in card.fractions if share == share] == [0.0, 0.75]


def test_words_have_their_numbers_and_long_texts_are_cut() -> None:
    card = read_text("Wrong, in 3 tasks: xyzzy " + "tasks " * 200, WORDS)
    assert card.ids[:2] == (WORDS["wrong"], WORDS["in"])
    assert card.ids[2] == NUMBER
    assert UNKNOWN in card.ids
    assert len(card.ids) == 96


def test_like_numbers_of_other_cards_give_a_place_that_no_order_changes() -> None:
    texts = ["4 errors in tasks", "9 errors in tasks", "1 errors in tasks"]
    cards = [read_text(text, WORDS) for text in texts]
    features = number_features(cards, VECTORS)
    assert [each.shape for each in features] == [(4, NUMBER_FEATURES)] * 3
    places = [float(each[0, 9]) for each in features]
    assert places[1] > places[0] > places[2]
    again = number_features(cards[::-1], VECTORS)[::-1]
    assert all(np.allclose(one, other) for one, other in zip(features, again, strict=True))


def test_a_card_without_a_number_and_an_empty_one_have_no_number_features() -> None:
    features = number_features([read_text("right", WORDS), read_text("", WORDS)], VECTORS)
    assert not features[0].any()
    assert features[1].shape == (1, NUMBER_FEATURES)
