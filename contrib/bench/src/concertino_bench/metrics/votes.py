"""maj@k: is the answer right that most of k samples give?

What votes is what the grader read (`Item.found`), compared by `answer_key`: `37`, `37.00` and `$37` are one answer.
Samples in which nothing was read do not vote. Ties are not broken by order: the value is the share of the tied answers
that are right, which is what drawing one of them by lot gives on average.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from concertino.text import answer_key

from concertino_bench.tasks.item import Item

from .correctness import first_samples
from .metric import Metric, Terms

MAJ_AT_K = Metric(
    "maj@k",
    "maj@k",
    "share",
    "higher",
    "0 to 1",
    "mean over tasks of (right answers among the most frequent ones of samples 0 to k-1) / (the most frequent ones)",
    "Wang et al. 2023, Self-Consistency (arXiv 2203.11171); ties by lot, here",
    "Whether a majority vote is right. Answers are compared as the grader read them, and spellings of one number or of "
    "one text are one answer; samples without an answer do not vote; tied answers count by the share of them that is "
    "right. Tasks with fewer than k samples are left out.",
    "majority_at(k)(items)",
)


def majority_at(k: int) -> Metric:
    """maj@k; a metric."""
    if k < 1:
        raise ValueError(f"k={k}: expected a number of samples, at least 1")

    def terms(items: Sequence[Item]) -> Terms | None:
        first = first_samples(items, k)
        return None if first is None else Terms(majority(first), 1.0)

    return MAJ_AT_K.named(f"maj@{k}", terms)


def majority(items: Sequence[Item]) -> float:
    """The probability, 0 to 1, that the most frequent answer of these samples is right, ties drawn by lot."""
    votes: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for item in items:
        if item.found:
            votes[tuple(map(answer_key, item.found))].append(item.right)
    if not votes:
        return 0.0
    most = max(len(voters) for voters in votes.values())
    shares = [sum(voters) / most for voters in votes.values() if len(voters) == most]
    return sum(shares) / len(shares)
