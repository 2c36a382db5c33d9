"""Cards as a network reads them: words by number, and what is known of each number in a text.

A number means something beside others: `12 of 15` is 0.8, and of three cards that speak of their error rate in the same
words, the least rate is the best. So each number has its value on several scales, its share of the number that it is
"of", and its place among like numbers of the other cards.

Invariant: features of a card depend on the set of the other cards, never on their order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

NUMBER_FEATURES = 8
"""Of each token: is a number; has a share; the share; log10; per 100; per 10; place among like ones; how like."""

NUMBER, UNKNOWN = 0, 1
"""Ids of a number and of a word that is in no vocabulary. Words begin at 2."""

_TOKEN = re.compile(r"(?:(?<![\w.,)%])[-\u2212])?\d+(?:[.,]\d+)*|[^\W\d_][\w'’]*|[%$€#/.;:!?]")
PUNCTUATION = tuple("%$€#/.;:!?")
"""Signs that are read as words."""
_ENDS = frozenset(".;!?")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
MOST_TOKENS = 96
"""Of a text; the rest is not read."""

_LARGEST = 1e12
_CONTEXT, _REACH = 4, 7

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class CardText:
    """A text as tokens.

    Attributes:
        ids: of the words; `NUMBER` where a number stands. Shape (tokens,).
        values: the numbers, NaN where a word stands.
        shares: of numbers that are a part of another one, a percentage, or between 0 and 1; else NaN.
        sentences: the number of the sentence that a token is in.
    """

    ids: tuple[int, ...]
    values: tuple[float, ...]
    shares: tuple[float, ...]
    sentences: tuple[int, ...]


def read_text(text: str, words: Mapping[str, int], percent: str = "percent") -> CardText:
    """The tokens of a text, `MOST_TOKENS` at most; of an empty text, one unknown word.

    Args:
        words: ids by word, in small letters; must give base forms for others, if it is to know them.
        percent: the word that the sign % is read as.
    """
    ids: list[int] = []
    values: list[float] = []
    sentences: list[int] = []
    sentence = 0
    for token in [found[0] for found in islice(_TOKEN.finditer(text), MOST_TOKENS)] or [""]:
        is_number = token.lstrip("-\u2212")[:1].isdecimal()
        word = percent if token == "%" else token.lower().replace("’", "'")
        ids.append(NUMBER if is_number else words.get(word, UNKNOWN))
        values.append(_value(token) if is_number else math.nan)
        sentences.append(sentence)
        sentence += token in _ENDS
    shares = [math.nan] * len(ids)
    places = [place for place, value in enumerate(values) if not math.isnan(value)]
    for one, other in pairwise(places):
        if other - one <= _REACH and 0 < values[other] >= values[one] >= 0 and math.isnan(shares[one]):
            shares[one] = shares[other] = values[one] / values[other]
    for place in places:
        if math.isnan(shares[place]) and words.get(percent, UNKNOWN) in ids[place + 1 : place + 2]:
            shares[place] = min(values[place] / 100, 1.0)
        elif math.isnan(shares[place]) and 0 < values[place] < 1:
            shares[place] = values[place]
    return CardText(tuple(ids), tuple(values), tuple(shares), tuple(sentences))


def _value(token: str) -> float:
    if not token[0].isdecimal():
        return -_value(token[1:])
    plain = token.replace(",", "") if _THOUSANDS.fullmatch(token) else token.replace(",", ".")
    try:
        return min(float(plain), _LARGEST)
    except ValueError:  # such as a version, 1.2.3
        return min(float(re.split(r"[.,]", token)[0]), _LARGEST)


def number_features(cards: Sequence[CardText], vectors: Floats) -> list[Floats]:
    """What is known of each token of each card, shape (tokens, NUMBER_FEATURES), beside the other cards of a cast.

    Args:
        vectors: of words by id; numbers are alike as far as the words around them are.
    """
    places = _places_among_like(cards, vectors)
    return [_features(card, place) for card, place in zip(cards, places, strict=True)]


def _features(card: CardText, place: Floats) -> Floats:
    values, shares = np.array(card.values, np.float32), np.array(card.shares, np.float32)
    known, part = ~np.isnan(values), ~np.isnan(shares)
    values, shares = np.nan_to_num(values), np.nan_to_num(shares)
    columns = (
        known,
        part,
        shares * part,
        np.sign(values) * np.log10(1 + np.abs(values)) / 4 * known,
        np.clip(values / 100, -2, 2) * known,
        np.clip(values / 10, -2, 2) * known,
        place[:, 0],
        place[:, 1],
    )
    return np.stack(columns, axis=1).astype(np.float32)


def _places_among_like(cards: Sequence[CardText], vectors: Floats) -> list[Floats]:
    """For each token: how far it is above like numbers of other cards (-1 to 1), and how like they are (0 to 1)."""
    found = [np.zeros((len(card.ids), 2), np.float32) for card in cards]
    numbers = [
        (number, place, _around(card, place, vectors))
        for number, card in enumerate(cards)
        for place, value in enumerate(card.values)
        if not math.isnan(value)
    ]
    if len(numbers) < 2:
        return found
    contexts = np.stack([context for *_, context in numbers])
    owners = np.array([owner for owner, *_ in numbers])
    parts = np.array([not math.isnan(cards[owner].shares[place]) for owner, place, _ in numbers])
    sizes = np.array(
        [
            cards[owner].shares[place] if part else cards[owner].values[place]
            for (owner, place, _), part in zip(numbers, parts, strict=True)
        ]
    )
    alike = np.exp(12 * (contexts @ contexts.T - 1))
    alike *= (owners[:, None] != owners) & (parts[:, None] == parts)
    above = (alike * np.sign(sizes[:, None] - sizes)).sum(1) / (alike.sum(1) + 0.1)
    for (owner, place, _), higher, weight in zip(numbers, above, alike.sum(1), strict=True):
        found[owner][place] = (higher, weight / (weight + 0.5))
    return found


def _around(card: CardText, place: int, vectors: Floats) -> Floats:
    """The mean of the words around a number, of length 1."""
    near = range(max(0, place - _CONTEXT), min(len(card.ids), place + _CONTEXT + 1))
    ids = [card.ids[each] for each in near if card.ids[each] > UNKNOWN and math.isnan(card.values[each])]
    total: Floats = vectors[ids].sum(0) if ids else np.zeros(vectors.shape[1], np.float32)
    found: Floats = total / np.float32(np.linalg.norm(total) + 1e-6)
    return found
