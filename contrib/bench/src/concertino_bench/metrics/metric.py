"""A metric: one definition with its name, unit, direction and source, computed over the items of one system.

A metric is a ratio of two sums over tasks, `Σ of / Σ per`: its function says what one task adds to both. Thus a value,
its interval and a paired difference come from the same definition: an interval draws tasks again and adds again.

The invariants: a metric never changes an item, does not depend on the order of items, and what is not known is counted
in `Value.missing` and never taken for zero.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from concertino_bench.tasks.item import Item

if TYPE_CHECKING:
    import numpy as np

Better = Literal["higher", "lower", ""]


class Terms(NamedTuple):
    """What one task adds to a metric.

    Attributes:
        of, per: to the sum above and below the line.
        missing: items of the task that could not be used.
        unknown: of these, the ones that have a value which nobody knows, such as money without a price.
    """

    of: float
    per: float
    missing: int = 0
    unknown: int = 0


class TermColumns(NamedTuple):
    """What the tasks add to a metric.

    Attributes:
        rows: per task the numbers to add up; tasks that add nothing have zeros.
        tasks: tasks that were used.
        missing, unknown: items that could not be used.
    """

    rows: Sequence[Sequence[float]]
    tasks: int
    missing: int
    unknown: int = 0


@dataclass(frozen=True)
class Value:
    """A value of a metric.

    Attributes:
        metric: name of the metric.
        value: in its unit; None where it is not known or not defined, infinite where nothing passed.
        tasks: tasks that it rests on.
        missing: items that could not be used: their price is unknown, they have no run, the task has too few samples.
        unknown: of these, the ones whose price is unknown.
        low, high: ends of an interval; None without one.
    """

    metric: str
    value: float | None
    tasks: int
    missing: int = 0
    unknown: int = 0
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; an infinite value is the text "inf"."""
        return {name: "inf" if value == math.inf else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Metric:
    """A metric of one system; call it with that system's items.

    Attributes:
        name: "accuracy", the key in `METRICS`.
        title: what tables call it.
        unit: "share", "$", "s", "calls"; what one unit of the value is.
        better: which direction is better; empty where neither is.
        within: the range of values.
        formula: how it is computed.
        source: where the definition comes from.
        summary: one or two sentences.
        use: how it is written in Python.
        needs: a value of graders without which it says nothing; a report leaves it out where no item has the value.
        strict: one item with an unknown price makes the value unknown; otherwise the value is of the other items.
        terms: what the items of one task add; None where the metric has a parameter or gives a table.
    """

    name: str
    title: str
    unit: str
    better: Better
    within: str
    formula: str
    source: str
    summary: str = ""
    use: str = ""
    strict: bool = False
    needs: str = field(default="", kw_only=True)
    terms: Callable[[Sequence[Item]], Terms | None] | None = field(default=None, repr=False, compare=False)

    def __call__(self, items: Iterable[Item]) -> Value:
        """The value over items, without an interval.

        Raises:
            TypeError: the metric has a parameter; `use` says how it is given.
        """
        return self.value(self.columns(list(by_task(items).values())))

    def value(self, columns: TermColumns) -> Value:
        """The value from what the tasks add."""
        # `fsum` is exact, so the order of the items cannot change the last digit.
        sums = [math.fsum(column) for column in zip(*columns.rows, strict=True)]
        value = None if self.strict and columns.unknown else self.one(sums)
        return Value(self.name, value, columns.tasks, columns.missing, columns.unknown)

    def columns(self, groups: Sequence[Sequence[Item]]) -> TermColumns:
        """What each group of items, those of one task, adds."""
        if self.terms is None:
            raise TypeError(f"{self.name} is not computed from items alone; write {self.use}")
        found = [self.terms(group) for group in groups]
        gone = [len(group) if got is None else got.missing for group, got in zip(groups, found, strict=True)]
        rows = [(0.0, 0.0) if got is None else (got.of, got.per) for got in found]
        tasks = sum(1 for group, lost in zip(groups, gone, strict=True) if lost < len(group))
        return TermColumns(rows, tasks, sum(gone), sum(got.unknown for got in found if got is not None))

    def among(self, items: Iterable[Item]) -> Metric:
        """The definition for items that are some of these; another one only where it depends on the others."""
        return self

    def one(self, sums: Sequence[float]) -> float | None:
        """The value from the sums of all tasks."""
        if not sums or (sums[0] == 0 and sums[1] == 0):
            return None
        # Money without a right answer: infinitely expensive, and not unknown.
        return sums[0] / sums[1] if sums[1] else math.inf

    def many(self, sums: np.ndarray) -> np.ndarray:
        """The values of many draws: an array (draws, 2) to one of (draws,); NaN where it is not defined."""
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):
            values: np.ndarray = sums[:, 0] / sums[:, 1]
        return values

    def named(self, name: str, terms: Callable[[Sequence[Item]], Terms | None]) -> Metric:
        """This definition with its parameter filled in; the name then is its title too, if it is another."""
        return replace(self, name=name, title=self.title if name == self.name else name, terms=terms)


def define(
    *,
    unit: str,
    better: Better,
    formula: str,
    source: str,
    title: str = "",
    within: str = "0 or more",
    strict: bool = False,
    needs: str = "",
) -> Callable[[Callable[[Sequence[Item]], Terms | None]], Metric]:
    """Make a function of the items of one task a metric of its name; its docstring is the summary."""

    def declare(terms: Callable[[Sequence[Item]], Terms | None]) -> Metric:
        name = terms.__name__
        summary = " ".join((terms.__doc__ or "").split())
        use = f'METRICS["{name}"](items)'
        shown = title or name.replace("_", " ")
        return Metric(name, shown, unit, better, within, formula, source, summary, use, strict, terms, needs=needs)

    return declare


def per_run(
    *, over: Callable[[Item], float] = lambda item: 1.0, **definition: Any
) -> Callable[[Callable[[Item], float | None]], Metric]:
    """Make a function of one item a metric: the sum of its values over the sum of `over`, per run if left out.

    Items without a run are missing, and so are those whose value is None; these are unknown.

    Args:
        definition: as `define` takes it.
    """
    make = define(**definition)

    def declare(value: Callable[[Item], float | None]) -> Metric:
        @functools.wraps(value)
        def terms(items: Sequence[Item]) -> Terms:
            of, per, missing, unknown = 0.0, 0.0, 0, 0
            for item in items:
                # A run that did not begin spent nothing, which would look cheap.
                if item.error:
                    missing += 1
                elif (got := value(item)) is None:
                    missing, unknown = missing + 1, unknown + 1
                else:
                    of, per = of + got, per + over(item)
            return Terms(of, per, missing, unknown)

        return make(terms)

    return declare


def by_task(items: Iterable[Item]) -> dict[str, list[Item]]:
    """Items by the id of their task, both in a fixed order."""
    groups: dict[str, list[Item]] = defaultdict(list)
    # Items finish in any order; draws go by the place of a task, so the same seed needs the same order.
    for item in sorted(items, key=lambda item: (item.key.task, item.key.sample, item.key.system)):
        groups[item.key.task].append(item)
    return dict(groups)


def by_system(items: Iterable[Item]) -> dict[str, list[Item]]:
    """Items by system, systems in the order of their first item."""
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        groups[item.key.system].append(item)
    return dict(groups)


def tally(counts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Counts added up by name, names sorted."""
    total: dict[str, float] = defaultdict(float)
    for each in counts:
        for name, count in each.items():
            total[name] += count
    return dict(sorted(total.items()))
