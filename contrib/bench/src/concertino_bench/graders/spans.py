"""Answers of one or several spans, compared as DROP compares them: exact match and F1 of numbers, dates and words.

Spans are paired so that their F1 add up to as much as possible; what is left over on either side counts as 0. The
invariant: a span whose gold holds a number earns nothing without one of its numbers. A task's metadata: `golds`, a list
of accepted answers, each a list of spans; without it the task's answers are the only one.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Sequence

from concertino_bench.tasks.grade import Grade, TextGrader, Verdict
from concertino_bench.tasks.task import Task

from .answers import final_answer
from .base import shown
from .matching import heaviest
from .multi_answer import read_answers

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Spans of one answer that are paired: far more than any gold has, and few enough for a cubic method.
_MOST = 60


class DropSpans(TextGrader):
    """Right if every span is given and no other."""

    name = "drop"
    kinds = ("spans",)

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text; the values are `em` and `f1`, each the largest over the accepted answers."""
        golds = _golds(task)
        whole = final_answer(text).text
        if not whole:
            return Grade(Verdict.UNPARSABLE, "there is no answer in the text", tuple(golds[0]))
        # "March 3, 1990" is one span and "Ann, Bob" two: a text that may be either is taken as what fits better.
        readings = [[whole], read_answers(text)[:_MOST]]
        compared = [(reading, *drop_scores(reading, gold)) for gold in golds for reading in readings if reading]
        em, f1 = max(each[1] for each in compared), max(each[2] for each in compared)
        found = max(compared, key=lambda each: (each[1], each[2]))[0]
        values = {"em": em, "f1": f1}
        if em:
            return Grade(Verdict.RIGHT, "the answer is right", tuple(golds[0]), tuple(found), values=values)
        reason = f"{shown('; '.join(found))!r}, expected {shown('; '.join(golds[0]))!r}; F1 {f1:.2f}"
        return Grade(Verdict.WRONG, reason, tuple(golds[0]), tuple(found), values=values)


def drop_scores(found: Sequence[str], gold: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1 of an answer, each 0 to 1; the F1 has two decimals, as in DROP's own script."""
    ours, theirs = ([_span(text) for text in spans] for spans in (found, gold))
    em = float(len(ours) == len(theirs) and set(ours) == set(theirs))
    weights = [[_f1(set(one.split()), set(other.split())) for other in ours] for one in theirs]
    pairs = heaviest(weights)
    total = math.fsum(row[column] for row, column in zip(weights, pairs, strict=True) if column is not None)
    return em, round(total / max(len(ours), len(theirs)), 2)


def _span(text: str) -> str:
    """A span as it is compared: words in lower case, without articles and punctuation, numbers in one form."""
    words = (_word(word) for word in re.split("[ -]", text))
    return " ".join(word for word in words if word)


def _word(word: str) -> str:
    word = word.lower()
    if _number(word) is None:
        word = word.translate(_PUNCTUATION)
    number = _number(word)
    return str(number) if number is not None else " ".join(_ARTICLES.sub(" ", word).split())


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _f1(found: set[str], gold: set[str]) -> float:
    numbers = {word for word in gold if _number(word) is not None}
    if numbers and not numbers & found:
        return 0.0
    same = len(found & gold)
    precision = same / len(found) if found else 1.0
    recall = same / len(gold) if gold else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _golds(task: Task) -> list[list[str]]:
    golds = task.metadata.get("golds") or ([list(task.answers)] if task.answers else [])
    fits = isinstance(golds, (list, tuple)) and all(
        isinstance(gold, (list, tuple)) and gold and all(isinstance(span, str) and span.strip() for span in gold)
        for gold in golds
    )
    if not golds or not fits:
        raise ValueError(
            f"{task.id}: metadata['golds'] is {shown(repr(golds))}; expected lists of spans, or answers of the task"
        )
    return [list(gold) for gold in golds]
