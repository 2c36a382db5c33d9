"""Whether two task sets share questions: equal ones, and ones that are nearly equal.

Questions are compared as words and signs: letters in lower case, spaces, quotes and commas gone, so a curly apostrophe
or a doubled blank makes no difference, and `x + 1` and `x - 1` stay different. Equal ones are found by a table. For
near ones a question is the set of its n-grams, and two are near if they share enough of them (Jaccard). No pair is
missed: with grams in order of rarity, two sets that share enough must share one of the first few, and only these are
looked up.

Cost: every n-gram is counted and sorted once, O(N log n) for N words in all; then one step per pair of questions that
share a rare n-gram, which is few unless all questions are of one template (then all pairs, at the worst). Memory: the
n-grams of both sets.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from concertino_bench.tasks.task import Task

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+|[-+*/^=<>%$\\|~−×÷√≤≥]")
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tasks with one question, or nearly.

    Attributes:
        left, right: ids.
        similarity: share of common n-grams, 1.0 for equal questions.
        same_answers: whether their answers are equal texts too.
    """

    left: str
    right: str
    similarity: float
    same_answers: bool


@dataclass(frozen=True, slots=True)
class OverlapReport:
    """What two task sets share.

    Attributes:
        left, right: how many tasks each has.
        exact: pairs with equal questions.
        near: pairs with nearly equal questions, the most similar first.
        n: words of an n-gram.
        threshold: similarity from which a pair is near.
    """

    left: int
    right: int
    exact: tuple[Pair, ...]
    near: tuple[Pair, ...]
    n: int
    threshold: float

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The exact pairs, then the near ones."""
        return self.exact + self.near

    @property
    def shared(self) -> int:
        """How many tasks on the right have a partner on the left."""
        return len({pair.right for pair in self.pairs})

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        counts = {"left": self.left, "right": self.right, "shared": self.shared}
        pairs = {kind: [asdict(pair) for pair in getattr(self, kind)] for kind in ("exact", "near")}
        return counts | pairs | {"n": self.n, "threshold": self.threshold}

    def __str__(self) -> str:
        share = f" ({self.shared / self.right:.1%})" if self.right else ""
        lines = [
            f"{self.shared} of {self.right} tasks{share} are among the {self.left} others: "
            f"{len(self.exact)} equal and {len(self.near)} near pairs ({self.n}-grams, from {self.threshold:g})"
        ]
        for pair in self.pairs[:_SHOWN]:
            note = "" if pair.same_answers else ", other answer"
            lines.append(f"  {pair.similarity:.2f}  {pair.left}  {pair.right}{note}")
        if len(self.pairs) > _SHOWN:
            lines.append(f"  and {len(self.pairs) - _SHOWN} more")
        return "\n".join(lines)


def words_of(text: str) -> list[str]:
    """The words, numbers and signs of a text, in one way of writing."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("’", "").replace("‘", "")
    return [word.replace(",", "") for word in _WORD.findall(folded)]


def overlap(left: Iterable[Task], right: Iterable[Task], *, n: int = 3, threshold: float = 0.6) -> OverlapReport:
    """Compare the questions of two task sets.

    Args:
        left: the one, such as what was trained on.
        right: the other, such as what is tested on.
        n: words of an n-gram; a shorter question is one gram.
        threshold: share of common n-grams (Jaccard) from which two questions are near, above 0 and at most 1.

    Returns:
        Every such pair, once.

    Raises:
        ValueError: `n` is below 1, or `threshold` out of range.
    """
    if n < 1 or not 0 < threshold <= 1:
        raise ValueError(f"n={n}, threshold={threshold}; expected n from 1, and a threshold above 0 and at most 1")
    sides = [[_Question.of(task, n) for task in tasks] for tasks in (left, right)]
    exact = _exact(*sides)
    found = [pair for pair in _near(sides[0], sides[1], threshold) if pair is not None]
    near = sorted(found, key=lambda pair: (-pair.similarity, pair.left, pair.right))
    return OverlapReport(len(sides[0]), len(sides[1]), tuple(exact), tuple(near), n, threshold)


@dataclass(frozen=True, slots=True)
class _Question:
    id: str
    key: str
    grams: frozenset[int]
    answers: tuple[str, ...]

    @classmethod
    def of(cls, task: Task, n: int) -> _Question:
        words = words_of(task.question)
        # A question of unknown signs alone has no words, and must not equal every other such one.
        key = " ".join(words) or task.question
        # Hashes instead of tuples: a set of a million questions has tens of millions of grams.
        grams = {hash(tuple(words[at : at + n])) for at in range(max(1, len(words) - n + 1))} if words else {hash(key)}
        return cls(task.id, key, frozenset(grams), task.answers)

    def with_(self, other: _Question, similarity: float) -> Pair:
        return Pair(self.id, other.id, round(similarity, 4), self.answers == other.answers)


def _exact(left: Sequence[_Question], right: Sequence[_Question]) -> list[Pair]:
    by_key: dict[str, list[_Question]] = {}
    for question in left:
        by_key.setdefault(question.key, []).append(question)
    return [mine.with_(theirs, 1.0) for theirs in right for mine in by_key.get(theirs.key, ())]


def _near(left: Sequence[_Question], right: Sequence[_Question], threshold: float) -> Iterable[Pair]:
    # Of both sides together: the two have to agree on which grams are rare.
    counts = Counter(gram for question in (*left, *right) for gram in question.grams)
    holders: dict[int, list[_Question]] = {}
    for question in left:
        for gram in _rarest(question.grams, counts, threshold):
            holders.setdefault(gram, []).append(question)
    for theirs in right:
        # By identity, since a pair may share several rare grams and is to be compared once.
        candidates = {
            id(mine): mine for gram in _rarest(theirs.grams, counts, threshold) for mine in holders.get(gram, ())
        }
        for mine in candidates.values():
            if mine.key != theirs.key and _sizes_allow(mine.grams, theirs.grams, threshold):
                common = len(mine.grams & theirs.grams)
                similarity = common / (len(mine.grams) + len(theirs.grams) - common)
                if similarity >= threshold:
                    yield mine.with_(theirs, similarity)


def _sizes_allow(one: frozenset[int], other: frozenset[int], threshold: float) -> bool:
    small, large = sorted((len(one), len(other)))
    # Sets whose sizes differ more than this cannot reach the threshold, whatever they share.
    return small >= threshold * large - 1e-9


def _rarest(grams: frozenset[int], counts: Counter[int], threshold: float) -> list[int]:
    """As many of the rarest grams as another set must share one of, if it shares `threshold` of all."""
    # 0.55 * 100 is 55.00000000000001 in floating point, and would be rounded up to 56.
    needed = ceil(threshold * len(grams) - 1e-9)
    # The gram itself breaks ties: both sides must sort in one order, or a pair could be missed.
    return sorted(grams, key=lambda gram: (counts[gram], gram))[: len(grams) - needed + 1]
