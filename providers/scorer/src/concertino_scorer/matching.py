"""How well the words of a card fit a question, so that a reader of cards knows which sentences speak of it.

Each word has a place by its meaning (a projection of its vector) and a weight, which is high for words that tell a
topic. A question, a sentence and the words around a place are each the weighted mean of their words.

Invariant: features depend on the set of the other cards, never on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .reading import UNKNOWN, CardText, Floats

MATCH_FEATURES = 4
"""Of each token: how the word, those around it, and its sentence fit the question; the sentence beside other cards."""

_REACH = 3


@dataclass(frozen=True)
class Matching:
    """What places words.

    Attributes:
        projection: shape (meaning, places); the first columns of a word's vector are its meaning.
        gate: by which the first columns of a word's vector give its weight; shape (columns,).
        bias: of the weights.
        own: added to the places of words with a row of their own, shape (rows, places).
        own_gate: added to their weights before the bend, shape (rows,).
    """

    projection: Floats
    gate: Floats
    bias: float
    own: Floats
    own_gate: Floats

    def placed(self, vectors: Floats, own_rows: np.ndarray) -> Floats:
        """All words at their places, times their weights; shape (words, places). Numbers and unknown words are 0.

        Args:
            vectors: of words by id.
            own_rows: of each word, 0 for none.
        """
        known = (own_rows > 0)[:, None]
        places = vectors[:, : len(self.projection)] @ self.projection + known * self.own[own_rows]
        gates = vectors[:, : len(self.gate)] @ self.gate + known[:, 0] * self.own_gate[own_rows] + self.bias
        found: Floats = (np.logaddexp(0, gates)[:, None] * _unit(places)).astype(np.float32)
        found[: UNKNOWN + 1] = 0
        return found


def match_features(question: Sequence[int], cards: Sequence[CardText], placed: Floats) -> list[Floats]:
    """How each token of each card fits the question, shape (tokens, MATCH_FEATURES).

    Args:
        question: ids of its words.
        placed: words by id, from `Matching.placed`.
    """
    asked = _unit(placed[list(question)].sum(0))
    found = []
    for card in cards:
        words = placed[list(card.ids)]
        totals = np.concatenate([np.zeros((1, words.shape[1])), words.cumsum(0)])
        places = np.arange(len(card.ids))
        around = totals[np.minimum(places + _REACH + 1, len(card.ids))] - totals[np.maximum(places - _REACH, 0)]
        sentences = np.zeros((max(card.sentences) + 1, words.shape[1]), np.float32)
        np.add.at(sentences, list(card.sentences), words)
        fits = _unit(sentences) @ asked
        found.append(np.stack([_unit(words) @ asked, _unit(around) @ asked, fits[list(card.sentences)]], axis=1))
    best = [float(each[:, 2].max()) if len(each) else 0.0 for each in found]
    return [
        np.column_stack([each, each[:, 2] - _best_other(best, number)]).astype(np.float32)
        for number, each in enumerate(found)
    ]


def _best_other(best: list[float], number: int) -> float:
    """How well the card fits that fits best beside this one; of a single card, its own fit."""
    return max(best[:number] + best[number + 1 :], default=best[number])


def _unit(vectors: Floats) -> Floats:
    return vectors / _lengths(vectors)


def _lengths(vectors: Floats) -> Floats:
    found: Floats = np.linalg.norm(vectors, axis=-1, keepdims=True) + 1e-6
    return found
