"""Cards as a network reads them: words by number, and what is known of each number in a text.

A number means something beside others: `12 of 15` is 0.8, and of three cards that speak of their error rate in the same
words, the least rate is the best. So each number has its value on several scales, its share of the number that it is
"of", its share of the largest number of its sentence, and its place among like numbers of the other cards. Numbers that
are written as words are numbers too.

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

NUMBER_FEATURES = 11
"""Of each token: is a number; has a share; the share; whether it is the part (1) or the total (-1) of it; is beside a
larger number in its sentence; its share of the largest one; log10; per 100; per 10; place among like ones; how like."""

NUMBER, UNKNOWN = 0, 1
"""Ids of a number and of a word that is in no vocabulary. Words begin at 2."""

_TOKEN = re.compile(r"(?:(?<![\w.,)%])[-\u2212])?\d+(?:[.,]\d+)*|[^\W\d_][\w'’]*|[%‰$€#/.;:!?]")
PUNCTUATION = tuple("%‰$€#/.;:!?")
"""Signs that are read as words."""
_ENDS = frozenset(".;!?")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
MOST_TOKENS = 96
"""Of a text; the rest is not read."""

_LARGEST = 1e12
_CONTEXT, _REACH = 4, 7
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_SMALL = {word: value for value, word in enumerate(_ONES)}
_TENS = {word: 10 * value for value, word in enumerate(("twenty", "thirty", "forty", "fifty"), 2)}
_TENS |= {word: 10 * value for value, word in enumerate(("sixty", "seventy", "eighty", "ninety"), 6)}
_UNITS = {**_SMALL, **_TENS}
_LARGE = {"dozen": 12, "hundred": 100, "thousand": 1000}
_BESIDE_ONE = frozenset(("in", "out", "of", "to", "for", "against", "every", "each", "per", "by"))
"""Beside these, `one` is a number; elsewhere it stands for a noun."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class CardText:
    """A text as tokens.

    Attributes:
        ids: of the words; `NUMBER` where a number stands. Shape (tokens,).
        values: the numbers, NaN where a word stands.
        shares: of numbers that are a part of another one, a percentage, or between 0 and 1; else NaN.
        roles: 1 for a part of another number, -1 for the total of which it is a part, else 0.
        fractions: of the largest number of its sentence; NaN for that one itself, and where it stands alone.
        sentences: the number of the sentence that a token is in.
    """

    ids: tuple[int, ...]
    values: tuple[float, ...]
    shares: tuple[float, ...]
    roles: tuple[int, ...]
    fractions: tuple[float, ...]
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
    for token, value in _numbered([found[0] for found in islice(_TOKEN.finditer(text), MOST_TOKENS)]):
        word = percent if token == "%" else token.lower().replace("’", "'")
        ids.append(words.get(word, UNKNOWN) if math.isnan(value) else NUMBER)
        values.append(value)
        sentences.append(sentence)
        sentence += token in _ENDS
    places = [place for place, value in enumerate(values) if not math.isnan(value)]
    shares, roles = _shares(values, sentences, places)
    hundred, thousand = words.get(percent), {words[word] for word in ("‰", "mille") if word in words}
    for place in places:
        behind = ids[place + 1 : place + 3]
        if hundred in behind[:1]:
            shares[place], roles[place] = min(values[place] / 100, 1.0), 1
        elif thousand & set(behind):
            shares[place], roles[place] = min(values[place] / 1000, 1.0), 1
        elif math.isnan(shares[place]) and 0 < values[place] < 1:
            shares[place], roles[place] = values[place], 1
    fractions = _fractions(values, sentences, places)
    return CardText(tuple(ids), tuple(values), tuple(shares), tuple(roles), tuple(fractions), tuple(sentences))


def _numbered(tokens: Sequence[str]) -> list[tuple[str, float]]:
    """Tokens with their values, NaN for words; of nothing, one unknown word. Number words become one token."""
    found: list[tuple[str, float]] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.lstrip("-\u2212")[:1].isdecimal():
            found.append((token, _value(token)))
            place += 1
            continue
        value, length = _spelt(tokens, place)
        found.append((token, value))
        place += length
    return found or [("", math.nan)]


def _spelt(tokens: Sequence[str], start: int) -> tuple[float, int]:
    """The number that words from a place on spell, and how many; NaN and 1 where they spell none."""
    words = [token.lower() for token in tokens[start : start + 8]]
    total, part, place, seen = 0, 0, 0, False
    if words[0] in ("a", "one") and words[1:2] and words[1] in _LARGE:
        part, place, seen = 1, 1, True
    while place < len(words):
        word = words[place]
        if word in _SMALL and part % 10 == 0 and part % 100 != 10 and (_SMALL[word] < 10 or part % 100 == 0):
            part += _SMALL[word]
        elif word in _TENS and part % 100 == 0:
            part += _TENS[word]
        elif word in _LARGE and seen and part:
            part, total = (0, total + part * 1000) if word == "thousand" else (part * _LARGE[word], total)
        elif word == "and" and seen and part >= 100 and words[place + 1 : place + 2] and words[place + 1] in _UNITS:
            place += 1
            continue
        else:
            break
        seen, place = True, place + 1
    if not seen or (place == 1 and words[0] == "one" and not _counts_one(tokens, start)):
        return math.nan, 1
    return float(total + part), place


def _counts_one(tokens: Sequence[str], place: int) -> bool:
    near = {token.lower() for token in (*tokens[max(0, place - 1) : place], *tokens[place + 1 : place + 2])}
    return bool(near & _BESIDE_ONE)


def _shares(values: Sequence[float], sentences: Sequence[int], places: Sequence[int]) -> tuple[list[float], list[int]]:
    """Of numbers that stand near each other the smaller one as a share of the larger, and which is which.

    `12 of 15` counts before `15, of them 12`.
    """
    shares, roles = [math.nan] * len(values), [0] * len(values)
    near = [
        (one, other)
        for one, other in pairwise(places)
        if other - one <= _REACH and sentences[one] == sentences[other] and max(values[one], values[other]) > 1
    ]
    for forward in (True, False):
        for one, other in near:
            part, total = (one, other) if forward else (other, one)
            free = math.isnan(shares[one]) and math.isnan(shares[other])
            if free and values[total] >= values[part] >= 0:
                shares[one] = shares[other] = values[part] / values[total]
                roles[part], roles[total] = 1, -1
    return shares, roles


def _fractions(values: Sequence[float], sentences: Sequence[int], places: Sequence[int]) -> list[float]:
    found = [math.nan] * len(values)
    for number in {sentences[place] for place in places}:
        own = [place for place in places if sentences[place] == number]
        largest = max(own, key=lambda place: values[place])
        for place in own:
            if place != largest and values[largest] > 0 and values[place] >= 0:
                found[place] = values[place] / values[largest]
    return found


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
    fractions = np.array(card.fractions, np.float32)
    known, part, beside = ~np.isnan(values), ~np.isnan(shares), ~np.isnan(fractions)
    values, shares, fractions = np.nan_to_num(values), np.nan_to_num(shares), np.nan_to_num(fractions)
    columns = (
        known,
        part,
        shares * part,
        np.array(card.roles, np.float32),
        beside,
        fractions * beside,
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
