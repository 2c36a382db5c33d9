"""All that is known of each token of a card beside its word: numbers, and how it fits the question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .matching import MATCH_FEATURES, match_features
from .reading import NUMBER_FEATURES, CardText, Floats, number_features

FEATURES = NUMBER_FEATURES + MATCH_FEATURES


def all_features(question: Sequence[int], cards: Sequence[CardText], vectors: Floats, placed: Floats) -> list[Floats]:
    """The features of each token of each card, shape (tokens, FEATURES).

    Args:
        question: ids of its words.
        cards: all cards of a question, which are compared.
        vectors: of words by id.
        placed: words by id, from `Matching.placed`.
    """
    numbers = number_features(cards, vectors)
    matches = match_features(question, cards, placed)
    return [np.concatenate(pair, axis=1) for pair in zip(numbers, matches, strict=True)]
