"""Cards beside a question: which sentence speaks of it, and which card does so most."""

from __future__ import annotations

import numpy as np
import pytest
from concertino_scorer.matching import MATCH_FEATURES, match_features
from concertino_scorer.model_file import ScorerModel
from concertino_scorer.reading import CardText, read_text


@pytest.fixture
def alike(model: ScorerModel) -> ScorerModel:
    """Chemistry is near acid, poetry near verse, and all else is far from both."""
    vectors = np.zeros_like(model.vectors)
    words = model.vocabulary
    for place, pair in enumerate((("chemistry", "acid"), ("poetry", "verse"))):
        for word in pair:
            vectors[words[word], place] = 1
    for word in ("excellent", "poor", "at"):
        vectors[words[word], 3] = 1
    model.vectors[:] = vectors
    return model


def features(model: ScorerModel, question: str, *cards: str) -> list[np.ndarray]:
    texts: list[CardText] = [read_text(card, model.vocabulary) for card in cards]
    return match_features(read_text(question, model.vocabulary).ids, texts, model.placed)


def test_the_sentence_that_speaks_of_the_question_fits_it(alike: ScorerModel) -> None:
    (card,) = features(alike, "acid", "excellent at chemistry. poor at poetry.")
    assert card.shape == (8, MATCH_FEATURES)
    assert card[2, 0] == pytest.approx(1, abs=1e-3)  # the word itself
    assert card[6, 0] == pytest.approx(0, abs=1e-3)
    assert min(card[:4, 2]) > max(card[4:, 2]) + 0.3  # the sentence


def test_a_card_is_compared_with_the_one_that_fits_best_beside_it(alike: ScorerModel) -> None:
    one, other, third = features(alike, "verse", "poetry", "chemistry", "excellent at poetry")
    assert one[0, 3] > 0 > third[0, 3] > other[0, 3]


def test_the_order_of_the_cards_changes_nothing(alike: ScorerModel) -> None:
    cards = ["poetry.", "excellent at chemistry", "poor", ""]
    forth, back = features(alike, "acid", *cards), features(alike, "acid", *reversed(cards))
    for one, same in zip(forth, reversed(back), strict=True):
        assert np.array_equal(one, same)


def test_a_question_of_unknown_words_fits_nothing(alike: ScorerModel) -> None:
    for question in ("", "xyzzy"):
        (card,) = features(alike, question, "excellent at chemistry")
        assert not card.any()


def test_a_word_with_a_row_of_its_own_has_another_place_and_weight(alike: ScorerModel) -> None:
    matching, rows = alike.matching, np.zeros(len(alike.vectors), np.int64)
    plain = matching.placed(alike.vectors, rows)
    matching.own[1] = (0, 9, 0, 0, 0, 0)
    matching.own_gate[1] = 3
    rows[alike.vocabulary["acid"]] = 1
    moved = matching.placed(alike.vectors, rows)
    changed = np.flatnonzero((moved != plain).any(axis=1))
    assert changed.tolist() == [alike.vocabulary["acid"]]
    acid, poetry = moved[alike.vocabulary["acid"]], moved[alike.vocabulary["poetry"]]
    assert acid @ poetry / np.linalg.norm(acid) / np.linalg.norm(poetry) > 0.9
    assert np.linalg.norm(acid) > 3 * np.linalg.norm(poetry)
