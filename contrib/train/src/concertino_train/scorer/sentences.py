"""Sentences about a member, by author. Each means a share of right answers, or says nothing of it.

A file `authors/<name>.jsonl` holds what one author wrote, a record a line:

    {"kind": "praise", "level": 0.75, "texts": [...]}       whole sentences that mean about this share
    {"kind": "adjectives", "level": 0.75, "words": [...]}   words for this share, for the frames
    {"kind": "adjectives", "frames": [...]}                 sentences with the slot {word} or {a_word}
    {"kind": "exams", "form": "points", "texts": [...]}     sentences with numbers, worked out from the share
    {"kind": "exams", "scale": "marks", "level": 0.75, "texts": [...]}   numbers on a scale of the author's own
    {"kind": "neutral", "texts": [...]}                     what says nothing of the share
    {"kind": "weak_topic", "texts": [...]}                  bad at {topic}; also strong_topic, purpose

Invariant: a sentence that is drawn has no slot left, and equal arguments with an equal state of chance give the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from random import Random

from concertino import UsageError
from concertino.schema import suggestion

DEVELOPMENT = (
    *("developer", "journalist", "assessor", "clerk", "broker", "curator", "publisher", "surveyor"),
    *("inspector", "dealer", "mentor", "arbiter", "neighbour", "foreman"),
)
"""Authors that no training reads; settings may be chosen by them."""
TEST = ("innkeeper", "professor", "trucker")
"""Authors that are read for the last figures alone: by no training, and by no choice of settings."""
HELD_OUT = (*DEVELOPMENT, *TEST)

KINDS = ("adjectives", "figures", "praise", "exams", "errors")
"""Kinds of sentences that tell a share."""

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Shares that words and whole sentences are written for."""

_NUMBERS = "figures"
"""The author of sentences with numbers and of frames, for those authors who wrote none."""
_WORDS = "qualities"
"""The author of words for shares, for those authors who wrote none."""
_PLAIN = "describer"
"""The author of other sentences that an author did not write."""
_GRADES = ("F", "E", "D-", "D", "D+", "C-", "C", "C+", "B-", "B", "B+", "A-", "A", "A+")
_TOTALS = (8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 200, 250, 300, 400, 500, 1000)
_POINTS = (10, 20, 40, 50, 60, 80, 100, 120, 150, 200, 800, 1600)

Texts = tuple[str, ...]


@dataclass
class _Families:
    """What one author wrote."""

    levelled: dict[str, dict[float, Texts]] = field(default_factory=dict)
    words: dict[float, Texts] = field(default_factory=dict)
    frames: Texts = ()
    forms: dict[str, dict[str, Texts]] = field(default_factory=dict)
    scales: dict[str, dict[str, dict[float, Texts]]] = field(default_factory=dict)
    plain: dict[str, Texts] = field(default_factory=dict)


@cache
def author_names() -> tuple[str, ...]:
    """All authors, those that are held out too."""
    folder = resources.files(__package__).joinpath("authors")
    return tuple(sorted(file.name.removesuffix(".jsonl") for file in folder.iterdir() if file.name.endswith(".jsonl")))


@cache
def _families(author: str) -> _Families:
    if author not in (known := author_names()):
        raise UsageError(f"unknown author {author!r}; {suggestion(author, known)}")
    text = resources.files(__package__).joinpath("authors", f"{author}.jsonl").read_text(encoding="utf-8")
    found = _Families()
    for record in map(json.loads, filter(str.strip, text.splitlines())):
        kind = record["kind"]
        if "words" in record:
            found.words[record["level"]] = tuple(record["words"])
        elif "frames" in record:
            found.frames = tuple(record["frames"])
        elif "scale" in record:
            levels = found.scales.setdefault(kind, {}).setdefault(record["scale"], {})
            levels[record["level"]] = tuple(record["texts"])
        elif "level" in record:
            found.levelled.setdefault(kind, {})[record["level"]] = tuple(record["texts"])
        elif "form" in record:
            found.forms.setdefault(kind, {})[record["form"]] = tuple(record["texts"])
        else:
            found.plain[kind] = tuple(record["texts"])
    return found


def texts_of(author: str) -> Iterator[str]:
    """All sentences of an author, with their slots.

    Raises:
        UsageError: the author is unknown.
    """
    families = _families(author)
    for levels in families.levelled.values():
        yield from (text for texts in levels.values() for text in texts)
    for forms in families.forms.values():
        yield from (text for texts in forms.values() for text in texts)
    for scales in families.scales.values():
        yield from (text for levels in scales.values() for texts in levels.values() for text in texts)
    yield from families.frames
    yield from (text for texts in families.plain.values() for text in texts)


def words_of(author: str) -> Mapping[float, Texts]:
    """The words of an author that stand for a share, by their level.

    Raises:
        UsageError: the author is unknown.
    """
    return _families(author).words


class Voice:
    """One or more authors as one source of sentences.

    Args:
        authors: names of `author_names()`.

    Raises:
        UsageError: an author is unknown; names near ones.
    """

    def __init__(self, *authors: str) -> None:
        self.authors = authors
        self._families = [_families(author) for author in authors]
        self._numbers = _families(_NUMBERS)
        own = [text for each in self._families for text in each.plain.get("neutral", ())]
        self._neutral = own or _families(_PLAIN).plain["neutral"]

    def about_share(
        self, kind: str, share: float, topic: str, name: str, rng: Random, *, scale: float = 0.5
    ) -> tuple[str, bool]:
        """A sentence that means a share of right answers, and whether it speaks of the topic.

        Args:
            kind: one of `KINDS`.
            share: 0 to 1; words and whole sentences are those of the nearest level.
            topic: a noun phrase.
            name: the member's.
            scale: 0 to 1, which scale ratings and rates are on; only numbers on one scale can be compared.
        """
        level = min(LEVELS, key=lambda each: abs(each - share))
        families = rng.choice(self._families)
        whole = families.levelled.get(kind, {}).get(level, ())
        scales = families.scales.get(kind, {})
        forms = families.forms.get(kind) or ({} if scales else self._numbers.forms.get(kind, {}))
        words = families.words.get(level, ())
        if kind == "adjectives" and words and (not whole or rng.random() < 0.6):
            word = rng.choice(words)
            frame = rng.choice(families.frames or self._numbers.frames)
            return _filled(frame.replace("{a_word}", _with_article(word)).replace("{word}", word), topic, name)
        if scales and (not (whole or forms) or rng.random() < 0.4):
            own = scales[sorted(scales)[int(scale * len(scales))]]
            return _filled(rng.choice(own[level]), topic, name)
        if forms and (not whole or rng.random() < 0.4):
            form = rng.choice(sorted(forms))
            return _filled(rng.choice(forms[form]), topic, name, _numbers_of(share, form, rng, scale))
        return _filled(rng.choice(whole or _families(_PLAIN).levelled[kind][level]), topic, name)

    def word(self, share: float, rng: Random) -> str:
        """A word for a share of right answers."""
        level = min(LEVELS, key=lambda each: abs(each - share))
        families = rng.choice(self._families)
        return rng.choice(families.words.get(level) or _families(_WORDS).words[level])

    def neutral(self, topic: str, name: str, rng: Random) -> str:
        """A sentence that says nothing of how good a member is."""
        return _filled(rng.choice(self._neutral), topic, name)[0]

    def about_topic(self, what: str, topic: str, name: str, rng: Random) -> str:
        """A sentence about one topic: `weak_topic`, `strong_topic`, or `purpose`, which says nothing of the share."""
        texts = rng.choice(self._families).plain.get(what) or self._numbers.plain[what]
        return _filled(rng.choice(texts), topic, name)[0]


def with_ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, ..."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _with_article(word: str) -> str:
    spoken_as_vowel = word[0].lower() in "aeiou" or (len(word.rstrip("+-")) == 1 and word[0] in "AEF")
    return f"{'an' if spoken_as_vowel else 'a'} {word}"


def _numbers_of(share: float, form: str, rng: Random, scale: float) -> Mapping[str, object]:
    """The numbers of a sentence, on a scale that is drawn: 12 of 15 and 320 of 400 mean the same."""
    total, field_size = rng.choice(_TOTALS), rng.randint(6, 60)
    best_rating, worst_rate = 10 ** (0.7 + 3 * scale), 10 ** (0.3 + 2 * scale)
    least_rating = best_rating / 3 if scale > 0.5 else 0.0  # such as Elo, which does not begin at 0
    most = rng.choice((5, 5, 5, 6, 10)) if form == "stars" else rng.choice(_POINTS)
    right, place = round(share * total), 1 + round((1 - share) * (field_size - 1))
    grade = _GRADES[min(len(_GRADES) - 1, int(share * len(_GRADES)))]
    percent = 100 * (1 - share if form == "percent_wrong" else share)
    return {
        "right": right,
        "total": total,
        "wrong": total - right,
        "points": round(share * most),
        "stars": round(share * most * 2) / 2 if rng.random() < 0.5 else round(share * most, 1),
        "most": most,
        "place": place,
        "place_th": with_ordinal(place),
        "field": field_size,
        "grade": grade,
        "a_grade": _with_article(grade),
        "every": max(1, round(1 / max(1 - share, 0.002))),
        "percent": round(percent) if rng.random() < 0.75 else round(percent, 1),
        "fraction": f"{share:.{rng.choice((1, 2, 2, 3))}f}",
        "fraction_wrong": f"{1 - share:.{rng.choice((2, 2, 3))}f}",
        "per_thousand": round(1000 * (1 - share)),
        "top": max(1, round(100 * (1 - share))),
        "rating": _short(least_rating + share * (best_rating - least_rating)),
        "rate": _short((1 - share) * worst_rate),
    }


def _short(number: float) -> str:
    """A number with about three digits."""
    return f"{number:.1f}" if number < 20 else str(round(number))


def _filled(text: str, topic: str, name: str, numbers: Mapping[str, object] | None = None) -> tuple[str, bool]:
    """A text with its slots filled, and whether it speaks of the topic."""
    spoken = "{topic}" in text
    for slot, value in {**(numbers or {}), "topic": topic, "name": name}.items():
        text = text.replace(f"{{{slot}}}", str(value))
    return text[:1].upper() + text[1:], spoken
