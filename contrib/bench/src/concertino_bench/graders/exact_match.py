"""Answers in words, compared as HotpotQA compares them: exact match, token F1 and containment, side by side.

Both texts are made lower case, lose their ASCII punctuation and the words a, an and the, and have single blanks. The
invariant: where either side is yes, no or noanswer and the two differ, every measure is 0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import NamedTuple

from concertino_bench.tasks.grade import Grade, TextGrader, Verdict
from concertino_bench.tasks.task import Task

from .answers import final_answer
from .base import golds, shown

# HotpotQA's own script gives no partial credit for these: "no" and "no one" share a word.
_SPECIAL = frozenset({"yes", "no", "noanswer"})
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
# ASCII only, as HotpotQA's script has it; more would make scores differ from published ones.
_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Likeness(NamedTuple):
    """How alike two texts are, each 0 to 1.

    Attributes:
        em: 1.0 if they are equal after normalisation.
        f1: harmonic mean of precision and recall of the words.
        containment: 1.0 if the words of one stand, in one piece, in the other.
    """

    em: float
    f1: float
    containment: float


def normalise(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single blanks. A text that is nothing else stays as it is."""
    bare = " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())
    # The answers "A" and "The" would otherwise be empty, and equal each other.
    return bare or " ".join(text.lower().split())


def likeness(answer: str, gold: str) -> Likeness:
    """Compare an answer with one gold text."""
    ours, theirs = normalise(answer), normalise(gold)
    if ours == theirs:
        return Likeness(1.0, 1.0, 1.0) if ours else Likeness(1.0, 0.0, 0.0)
    if ours in _SPECIAL or theirs in _SPECIAL or not ours or not theirs:
        return Likeness(0.0, 0.0, 0.0)
    inside = f" {theirs} " in f" {ours} " or f" {ours} " in f" {theirs} "
    return Likeness(0.0, _f1(ours.split(), theirs.split()), float(inside))


class ExactMatch(TextGrader):
    """Right if the answer equals a gold text after normalisation."""

    name = "exact-match"
    kinds = ("text",)

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text; the values are `em`, `f1` and `containment`."""
        return _judge(task, text, None)


class TokenF1(TextGrader):
    """Right if the words of the answer and of a gold text overlap enough.

    Args:
        threshold: the least F1 that is right, above 0 and up to 1.
    """

    name = "token-f1"

    def __init__(self, threshold: float = 0.5) -> None:
        if not 0 < threshold <= 1:
            raise ValueError(f"TokenF1(threshold={threshold}); expected a number above 0 and up to 1")
        self.threshold = threshold

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text; the values are `em`, `f1` and `containment`."""
        return _judge(task, text, self.threshold)


def _judge(task: Task, text: str, threshold: float | None) -> Grade:
    accepted = golds(task)
    found = final_answer(text)
    if not found.text:
        where = f"the answer in {found.marker} is empty" if found.marker else "the text is empty"
        return Grade(Verdict.UNPARSABLE, where, accepted)
    compared = [likeness(found.text, gold) for gold in accepted]
    # Each measure takes its own best gold text, as in SQuAD and HotpotQA.
    seen = Likeness(*(max(column) for column in zip(*compared, strict=True)))
    right = seen.em == 1.0 if threshold is None else seen.f1 >= threshold
    reason = _reason(found.text, accepted, seen) if threshold is None else _overlap(seen, threshold)
    verdict = Verdict.RIGHT if right else Verdict.WRONG
    return Grade(verdict, reason, accepted, (found.text,), values=seen._asdict())


def _reason(answer: str, accepted: tuple[str, ...], seen: Likeness) -> str:
    if seen.em:
        return "the answer is right"
    more = f" or {len(accepted) - 1} other texts" if len(accepted) > 1 else ""
    return f"{shown(answer)!r}, expected {shown(accepted[0])!r}{more}; F1 {seen.f1:.2f}"


def _overlap(seen: Likeness, threshold: float) -> str:
    return f"F1 {seen.f1:.2f}, {'at least' if seen.f1 >= threshold else 'below'} the threshold {threshold:g}"


def _f1(ours: list[str], theirs: list[str]) -> float:
    same = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * same / (len(ours) + len(theirs)) if same else 0.0
