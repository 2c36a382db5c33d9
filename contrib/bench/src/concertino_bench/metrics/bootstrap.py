"""Bootstrap intervals: what a value might have been with other tasks of the same kind.

Tasks are drawn with replacement, each with all of its samples (the samples of a task are not independent); the metric
is computed again from every draw; the interval holds the middle share of the results. The draws come from a seed, and
tasks are taken in the order of their ids, so the same items give the same interval, in whatever order they come.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from concertino_bench.tasks.item import Item

from .metric import Metric, TermColumns, Value, by_task

if TYPE_CHECKING:
    import numpy as np

LEVEL = 0.95
RESAMPLES = 2000
_CHUNK = 250
"""Draws at a time: 10,000 tasks need 20 MB."""
_KEPT = 20_000_000
"""Draws times tasks that are kept in memory, of 2 bytes each."""


def intervals(
    items: Iterable[Item],
    metrics: Sequence[Metric],
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Value]:
    """Values of one system with percentile intervals, clustered by task.

    The interval is widened to hold the value where the percentiles leave it out, which happens with estimates that are
    biased in small samples, such as entropies. A single task, or a value that is not known, has no interval.

    Args:
        items: of one system.
        metrics: what to compute; all see the same draws.
        level: share of the draws that an interval holds, such as 0.95.
        resamples: number of draws.
        seed: of the draws.

    Raises:
        ValueError: a level outside 0 to 1, or less than one draw.
    """
    check(level, resamples)
    items = list(items)
    groups = list(by_task(items).values())
    columns = [metric.columns(groups) for metric in metrics]
    values = [metric.value(each) for metric, each in zip(metrics, columns, strict=True)]
    # Every draw of a single task is that task, so its interval would have no width.
    if len(groups) < 2:
        return values
    drawn = draws(columns, resamples, seed)
    return [
        value if value.value is None else _with_ends(value, metric.many(sums), level)
        for value, metric, sums in zip(values, metrics, drawn, strict=True)
    ]


def check(level: float, resamples: int) -> None:
    """Raise ValueError for a level or a number of draws that cannot be."""
    if not 0 < level < 1:
        raise ValueError(f"level={level}: expected a share between 0 and 1, such as 0.95")
    if resamples < 1:
        raise ValueError(f"resamples={resamples}: expected at least 1")


def draws(columns: Sequence[TermColumns], resamples: int, seed: int) -> list[np.ndarray]:
    """Sums of each metric's columns in many draws of the tasks: for each metric an array (resamples, columns)."""
    import numpy as np

    widths = [len(each.rows[0]) if each.rows else 0 for each in columns]
    tasks = len(columns[0].rows) if columns else 0
    # One table for all metrics: each chunk of draws is then a single multiplication, and all see the same draws.
    table = np.hstack([np.asarray(each.rows, dtype=float).reshape(tasks, -1) for each in columns])
    sums = np.vstack([weights @ table for weights in _weights(tasks, resamples, seed)])
    return np.split(sums, np.cumsum(widths)[:-1], axis=1)


def _weights(tasks: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each task is in each draw, chunk by chunk: arrays (draws, tasks)."""
    small = tasks * resamples <= _KEPT
    for counts in _kept(tasks, resamples, seed) if small else _counts(tasks, resamples, seed):
        yield counts.astype(float)


@lru_cache(maxsize=4)
def _kept(tasks: int, resamples: int, seed: int) -> list[np.ndarray]:
    """Draws that are kept, for systems on equally many tasks see the same ones."""
    return list(_counts(tasks, resamples, seed))


def _counts(tasks: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    import numpy as np

    random = np.random.default_rng(seed)
    for start in range(0, resamples, _CHUNK):
        count = min(_CHUNK, resamples - start)
        # Tasks of draw k get the numbers k * tasks and up, so one bincount counts all draws of the chunk.
        picked = random.integers(tasks, size=(count, tasks)) + np.arange(count)[:, None] * tasks
        # 2 bytes are enough: a task is drawn about once per draw, and never 65,536 times.
        yield np.bincount(picked.ravel(), minlength=count * tasks).reshape(count, tasks).astype(np.uint16)


def _with_ends(value: Value, drawn: np.ndarray, level: float) -> Value:
    ends = percentiles(drawn, level)
    if ends is None or value.value is None:
        return value
    return replace(value, low=min(ends[0], value.value), high=max(ends[1], value.value))


def percentiles(drawn: np.ndarray, level: float) -> tuple[float, float] | None:
    """The two ends of the middle share `level` of draws; draws in which the value is not defined do not count."""
    import numpy as np

    kept = np.sort(drawn[~np.isnan(drawn)])
    if not len(kept):
        return None
    last = len(kept) - 1
    # Rounded outwards on both sides, so an interval never holds less than `level` of the draws.
    low, high = math.floor(last * (1 - level) / 2), math.ceil(last * (1 + level) / 2)
    return float(kept[low]), float(kept[high])
