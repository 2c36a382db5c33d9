"""Several samples of a task: mean@k, pass@k (is one of k right?), G-Pass@k (are enough?) and maj@k (is a vote?)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil, comb

from concertino.text import answer_key

from concertino_bench.tasks.item import Item

from .metric import Metric, Terms

MEAN_AT_K = Metric(
    "mean@k",
    "mean@k",
    "share",
    "higher",
    "0 to 1",
    "mean over tasks of (right among the samples 0 to k-1) / k",
    "avg@k of lighteval; ParaManager Table 1 (k = 8)",
    "Accuracy over the first k samples, by their numbers. Tasks with fewer samples are left out and counted.",
    "mean_at(k)(items)",
)
PASS_AT_K = Metric(
    "pass@k",
    "pass@k",
    "share",
    "higher",
    "0 to 1",
    "mean over tasks of 1 - C(n - c, k) / C(n, k), with n samples of which c are right",
    "Chen et al. 2021, Evaluating Large Language Models Trained on Code, Eq. 1 (arXiv 2107.03374)",
    "The probability that at least one of k samples is right. All n samples of a task are used; tasks with n < k are "
    "left out and counted.",
    "pass_at(k)(items)",
)
G_PASS_AT_K = Metric(
    "g-pass@k",
    "G-Pass@k",
    "share",
    "higher",
    "0 to 1",
    "mean over tasks of the sum over j from ceil(tau k) of C(c, j) C(n - c, k - j) / C(n, k), with n samples of which "
    "c are right; without tau (2 / k) times the sum of these for tau = i / k, i from ceil(k / 2) + 1 to k",
    "Liu et al. 2024, Are Your LLMs Capable of Stable Reasoning?, Eq. 3 and 6 (arXiv 2412.13147)",
    "The probability that at least the share tau of k samples is right. tau = 1 asks for all of them, and the smallest "
    "tau is pass@k. Tasks with n < k are left out and counted.",
    "g_pass_at(k, tau)(items)",
)
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


def mean_at(k: int) -> Metric:
    """`accuracy` over the samples numbered 0 to k-1 only; tasks with fewer than k samples are left out."""
    _check(k)

    def terms(items: Sequence[Item]) -> Terms | None:
        first = first_samples(items, k)
        return None if first is None else Terms(sum(item.right for item in first) / k, 1.0)

    return MEAN_AT_K.named(f"mean@{k}", terms)


def pass_at_k(n: int, c: int, k: int) -> float:
    """The unbiased estimate of pass@k from n samples of which c are right.

    Raises:
        ValueError: not 1 <= k <= n and 0 <= c <= n.
    """
    if not (1 <= k <= n and 0 <= c <= n):
        raise ValueError(f"pass_at_k(n={n}, c={c}, k={k}): expected 1 <= k <= n and 0 <= c <= n")
    # Whole numbers from `comb`: the usual product of fractions loses digits for large n.
    return 1.0 - comb(n - c, k) / comb(n, k)


def pass_at(k: int) -> Metric:
    """pass@k, the chance that at least one of k samples is right."""
    _check(k)

    def terms(items: Sequence[Item]) -> Terms | None:
        right = sum(item.right for item in items)
        return Terms(pass_at_k(len(items), right, k), 1.0) if len(items) >= k else None

    return PASS_AT_K.named(f"pass@{k}", terms)


def g_pass_at_k(n: int, c: int, k: int, tau: float | None = None) -> float:
    """The unbiased estimate of G-Pass@k from n samples of which c are right; its mean over tau above 1/2 without tau.

    Raises:
        ValueError: not 1 <= k <= n, 0 <= c <= n and 0 <= tau <= 1.
    """
    if not (1 <= k <= n and 0 <= c <= n) or not (tau is None or 0 <= tau <= 1):
        raise ValueError(
            f"g_pass_at_k(n={n}, c={c}, k={k}, tau={tau}): expected 1 <= k <= n, 0 <= c <= n and 0 <= tau <= 1"
        )
    ways = [comb(c, right) * comb(n - c, k - right) for right in range(k + 1)]
    if tau is None:
        first = ceil(k / 2) + 1
        return 2 / k * sum(sum(ways[least:]) for least in range(first, k + 1)) / comb(n, k)
    # 0.1 + 0.2 of ten samples are three and not four; and no share of samples is none of them.
    least = max(1, ceil(round(tau * k, 9)))
    return sum(ways[least:]) / comb(n, k)


def g_pass_at(k: int, tau: float | None = None) -> Metric:
    """G-Pass@k, the chance that at least the share `tau` of k samples is right; without it, the mean over tau > 1/2."""
    _check(k)
    if tau is not None and not 0 <= tau <= 1:
        raise ValueError(f"tau={tau}: expected a share, 0 to 1")

    def terms(items: Sequence[Item]) -> Terms | None:
        right = sum(item.right for item in items)
        return Terms(g_pass_at_k(len(items), right, k, tau), 1.0) if len(items) >= k else None

    name = f"mg-pass@{k}" if tau is None else f"g-pass@{k}:{tau:g}"
    return G_PASS_AT_K.named(name, terms)


def majority_at(k: int) -> Metric:
    """maj@k, how often a majority vote of the first k samples is right.

    What votes is what the grader read (`Item.found`), compared by `answer_key`: `37`, `37.00` and `$37` are one answer.
    """
    _check(k)

    def terms(items: Sequence[Item]) -> Terms | None:
        first = first_samples(items, k)
        return None if first is None else Terms(majority(first), 1.0)

    return MAJ_AT_K.named(f"maj@{k}", terms)


def majority(items: Sequence[Item]) -> float:
    """The probability, 0 to 1, that the most frequent answer of these samples is right, ties drawn by lot."""
    votes: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for item in items:
        if item.found:
            # Spellings of one answer may differ in their verdicts, so all of these are kept.
            votes[tuple(map(answer_key, item.found))].append(item.right)
    if not votes:
        return 0.0
    most = max(len(voters) for voters in votes.values())
    shares = [sum(voters) / most for voters in votes.values() if len(voters) == most]
    return sum(shares) / len(shares)


def first_samples(items: Sequence[Item], k: int) -> list[Item] | None:
    """The items with the sample numbers 0 to k-1; None if one is not there."""
    # By number, so a file with a missing sample does not compare other samples in its place.
    first = {item.key.sample: item for item in items if item.key.sample < k}
    return [first[sample] for sample in range(k)] if len(first) == k else None


def _check(k: int) -> None:
    if k < 1:
        raise ValueError(f"k={k}: expected a number of samples, at least 1")
