"""Two systems on the same tasks: how far apart they are, and whether chance explains it.

The invariant: only keys count, task and sample, that both systems have, and of these only the ones in which a metric
is known of both; the others are counted. Both systems see the same draws of tasks, so what makes a task
hard for both cancels out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, NamedTuple

from concertino_bench.tasks.item import Item

from .bootstrap import LEVEL, RESAMPLES, check, draws, percentiles
from .correctness import accuracy
from .metric import Metric, TermColumns, by_task


class McNemar(NamedTuple):
    """McNemar's exact test.

    Attributes:
        only_a, only_b: tasks that only one of the two got right.
        both, neither: the others.
        p: two-sided probability of a split at least as uneven, if both were equally good; 0 to 1.
    """

    only_a: int
    only_b: int
    both: int
    neither: int
    p: float


@dataclass(frozen=True)
class Difference:
    """How much larger a metric is for b than for a, on common keys.

    Attributes:
        metric: its name.
        a, b: the values; None where unknown.
        difference: b - a, with the ends of its interval.
        ratio: b / a, None where a is 0 or unknown.
        tasks: tasks that both values rest on.
    """

    metric: str
    a: float | None
    b: float | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None
    tasks: int = 0


@dataclass(frozen=True)
class Comparison:
    """Two systems compared.

    Attributes:
        a, b: their names.
        items, tasks: common keys, and the tasks that these belong to.
        dropped_a, dropped_b: items of one system that the other has not.
        differences: one per metric.
        mcnemar: over one sample per task, the first that both have.
    """

    a: str
    b: str
    items: int
    tasks: int
    dropped_a: int
    dropped_b: int
    differences: tuple[Difference, ...]
    mcnemar: McNemar

    def __getitem__(self, metric: str) -> Difference:
        """The difference of one metric.

        Raises:
            KeyError: it was not compared.
        """
        for each in self.differences:
            if each.metric == metric:
                return each
        raise KeyError(f"{metric!r} was not compared; there are {[each.metric for each in self.differences]}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        differences = [vars(each) for each in self.differences]
        return {**vars(self), "differences": differences, "mcnemar": self.mcnemar._asdict()}


def compare(
    items: Iterable[Item],
    a: str,
    b: str,
    metrics: Sequence[Metric] = (accuracy,),
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Compare two systems on the keys that both have: a paired bootstrap of the differences, and McNemar's test.

    An item that a metric cannot use, such as the seconds of a run that did not begin, is left out with the one that it
    is compared with. An unknown price still makes a *strict* metric unknown.

    Raises:
        ValueError: a system has no items, or the two share no key.
    """
    check(level, resamples)
    items = list(items)
    metrics = [metric.among(items) for metric in metrics]
    of_a, of_b = _items_of(items, a, b)
    common = of_a.keys() & of_b.keys()
    if not common:
        raise ValueError(f"{a!r} and {b!r} share no task: {len(of_a)} and {len(of_b)} items, 0 common keys")
    groups_a = by_task(of_a[key] for key in common)
    groups_b = by_task(of_b[key] for key in common)
    differences = _differences([*groups_a.values()], [*groups_b.values()], metrics, level, resamples, seed)
    # One sample per task: the test takes its pairs for independent, and samples of a task are not.
    pairs = [
        (first[0].right, second[0].right) for first, second in zip(groups_a.values(), groups_b.values(), strict=True)
    ]
    return Comparison(
        a, b, len(common), len(groups_a), len(of_a) - len(common), len(of_b) - len(common), differences, _mcnemar(pairs)
    )


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Two-sided exact p of McNemar's test, 0 to 1: a binomial test of `only_a` against `only_b` at one half.

    McNemar 1947; the exact form is the sign test (Conover 1999, §3.5).
    """
    # Whole numbers throughout: 2**n of a large study is beyond a float.
    n = only_a + only_b
    tail = sum(comb(n, k) for k in range(min(only_a, only_b) + 1))
    return min(1.0, 2 * tail / (1 << n))


def holm(p: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979): the chance of any false alarm stays below the level."""
    order = sorted(range(len(p)), key=p.__getitem__)
    corrected, least = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        # The running maximum keeps a larger p from being corrected to a smaller one.
        least = max(least, min(1.0, (len(p) - rank) * p[i]))
        corrected[i] = least
    return corrected


def _differences(
    groups_a: list[list[Item]],
    groups_b: list[list[Item]],
    metrics: Sequence[Metric],
    level: float,
    resamples: int,
    seed: int,
) -> tuple[Difference, ...]:
    both = [_paired(metric, groups_a, groups_b) for metric in metrics]
    drawn_a = drawn_b = None
    if len(groups_a) > 1 and metrics:
        # The same seed on both sides draws the same tasks, which is what pairs the two systems.
        drawn_a, drawn_b = (draws([pair[side] for pair in both], resamples, seed) for side in (0, 1))
    found = []
    for k, metric in enumerate(metrics):
        a, b = (metric.value(columns).value for columns in both[k])
        tasks = both[k][0].tasks
        if a is None or b is None or math.isinf(a) or math.isinf(b):
            found.append(Difference(metric.name, a, b, tasks=tasks))
            continue
        ends = None
        if drawn_a is not None and drawn_b is not None:
            ends = percentiles(_minus(metric.many(drawn_b[k]), metric.many(drawn_a[k])), level)
        low, high = (None, None) if ends is None else (min(ends[0], b - a), max(ends[1], b - a))
        found.append(Difference(metric.name, a, b, b - a, low, high, b / a if a else None, tasks))
    return tuple(found)


def _paired(metric: Metric, groups_a: list[list[Item]], groups_b: list[list[Item]]) -> tuple[TermColumns, TermColumns]:
    """What the tasks add for each side, over those keys whose item the metric can use on both."""
    kept: list[tuple[list[Item], list[Item]]] = []
    for first, second in zip(groups_a, groups_b, strict=True):
        pairs = [pair for pair in zip(first, second, strict=True) if not any(_lost(metric, item) for item in pair)]
        kept.append(([a for a, _ in pairs], [b for _, b in pairs]))
    used = [bool(pair[0]) and all(_used(metric, group) for group in pair) for pair in kept]
    a, b = (_over(metric, [pair[side] for pair in kept], used) for side in (0, 1))
    return a, b


def _lost(metric: Metric, item: Item) -> bool:
    """Whether a metric has no use for an item; what needs several samples is asked task by task instead."""
    if metric.terms is None:  # an entropy, which has columns of its own
        return bool(metric.columns([[item]]).missing)
    terms = metric.terms([item])
    return terms is not None and bool(terms.missing) and not (metric.strict and terms.unknown)


def _used(metric: Metric, group: list[Item]) -> bool:
    """Whether a metric rests on a task; a strict one rests on unknown prices too, and is unknown for them."""
    columns = metric.columns([group])
    return bool(columns.tasks) or (metric.strict and bool(columns.unknown))


def _over(metric: Metric, groups: list[list[Item]], used: Sequence[bool]) -> TermColumns:
    """What all groups add, with nothing of those that are empty or not used."""
    columns = metric.columns([group for group in groups if group])
    rows, nothing = iter(columns.rows), [0.0] * (len(columns.rows[0]) if columns.rows else 2)
    added = [next(rows) if group else nothing for group in groups]
    # Zeros instead of leaving out: both sides must keep one row per task, or the draws would not be paired.
    rows_used = [row if use else nothing for row, use in zip(added, used, strict=True)]
    return TermColumns(rows_used, sum(used), columns.missing, columns.unknown)


def _minus(b: Any, a: Any) -> Any:
    import numpy as np

    with np.errstate(invalid="ignore"):  # inf - inf is not a number, and such draws do not count
        return b - a


def _items_of(items: list[Item], a: str, b: str) -> tuple[dict[tuple[str, int], Item], dict[tuple[str, int], Item]]:
    of_a, of_b = ({item.key[1:]: item for item in items if item.key.system == name} for name in (a, b))
    for name, of in ((a, of_a), (b, of_b)):
        if not of:
            there = ", ".join(sorted({item.key.system for item in items})) or "none"
            raise ValueError(f"system {name!r} has no items; there are: {there}")
    return of_a, of_b


def _mcnemar(pairs: Sequence[tuple[bool, bool]]) -> McNemar:
    only_a, only_b = pairs.count((True, False)), pairs.count((False, True))
    return McNemar(only_a, only_b, pairs.count((True, True)), pairs.count((False, False)), mcnemar_p(only_a, only_b))
