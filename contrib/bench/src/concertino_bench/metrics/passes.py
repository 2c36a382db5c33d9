"""pass@k: does one of k samples pass? Estimated without bias from n >= k samples."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from concertino_bench.tasks.item import Item

from .metric import Metric, Terms

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


def pass_at_k(n: int, c: int, k: int) -> float:
    """The unbiased estimate of pass@k from n samples of which c are right.

    Raises:
        ValueError: not 1 <= k <= n and 0 <= c <= n.
    """
    if not (1 <= k <= n and 0 <= c <= n):
        raise ValueError(f"pass_at_k(n={n}, c={c}, k={k}): expected 1 <= k <= n and 0 <= c <= n")
    return 1.0 - comb(n - c, k) / comb(n, k)


def pass_at(k: int) -> Metric:
    """pass@k; a metric."""
    if k < 1:
        raise ValueError(f"k={k}: expected a number of samples, at least 1")

    def terms(items: Sequence[Item]) -> Terms | None:
        right = sum(item.right for item in items)
        return Terms(pass_at_k(len(items), right, k), 1.0) if len(items) >= k else None

    return PASS_AT_K.named(f"pass@{k}", terms)
