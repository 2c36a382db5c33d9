"""Our numbers beside the published ones.

The invariant: a number of ours is shown only where every task of its data is done by its system; what is missing is
told beside the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concertino_bench.metrics import METRICS, value_mean
from concertino_bench.reports.results import read_results
from concertino_bench.tasks.item import Item

from .recipe import NONE, PaperColumn, Recipe
from .repeating import Wanted, results_file

OF_A_RUN: Mapping[str, Callable[[Item], float]] = {
    "tokens": lambda item: item.usage.tokens,
    "requests": lambda item: sum(use.calls for use in item.members.values() if use.kind == "model"),
}
"""Metrics of tables alone, of one run each: tokens of all models, in and out, and requests to models."""


@dataclass(frozen=True)
class OurRow:
    """A row of ours.

    Attributes:
        system: which one.
        beside: the published row that it stands beside; empty without one.
        values: a number for each column, None where it is not known.
        runs: how many were counted.
    """

    system: str
    beside: str
    values: Sequence[float | None]
    runs: int


@dataclass(frozen=True)
class PaperTable:
    """A table with our rows.

    Attributes:
        recipe: what it is of.
        ours: our rows, in the order of the recipe's systems.
        notes: what is missing, and why.
        tasks: by data, how many were asked.
    """

    recipe: Recipe
    ours: Sequence[OurRow]
    notes: Sequence[str] = ()
    tasks: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        recipe = self.recipe
        columns = [column.name for column in recipe.columns]
        return {
            "recipe": recipe.name,
            "source": recipe.source,
            "title": recipe.title,
            "columns": {column.name: column.unit for column in recipe.columns},
            "published": {row.name: dict(zip(columns, row.values, strict=True)) for row in recipe.rows},
            "ours": {
                row.system: {
                    "beside": row.beside,
                    "runs": row.runs,
                    "values": dict(zip(columns, row.values, strict=True)),
                }
                for row in self.ours
            },
            "tasks": dict(self.tasks),
            "same": list(recipe.same),
            "differs": list(recipe.differs),
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """For people: published rows, ours, what is the same and what differs."""
        recipe = self.recipe
        names = [row.name for row in recipe.rows] + [f"ours: {row.system}" for row in self.ours]
        first = max(len("published"), *map(len, names))
        widths = [max(8, len(column.name), len(column.unit)) for column in recipe.columns]
        found = [f"{recipe.source}: {recipe.title}", ""]
        found.append(_line("published", [column.name for column in recipe.columns], first, widths))
        found.append(_line("", [column.unit for column in recipe.columns], first, widths))
        found += [_line(row.name, _texts(row.values), first, widths) for row in recipe.rows]
        found.append("")
        published = {row.name: row.values for row in recipe.rows}
        for row in self.ours:
            found.append(_line(f"ours: {row.system}", _texts(row.values), first, widths))
            if row.beside:
                pairs = zip(row.values, published[row.beside], strict=True)
                gaps = [None if a is None or b is None else a - b for a, b in pairs]
                found.append(_line("  ours - published", [_gap(gap) for gap in gaps], first, widths, row.beside))
        if self.ours:
            found += ["", f"tasks: {', '.join(f'{count} of {name}' for name, count in self.tasks.items())}"]
        found += ["the same as in the paper:", *(f"  {each}" for each in recipe.same)]
        found += ["different:", *(f"  {each}" for each in recipe.differs)]
        return found


def table_of(recipe: Recipe, wants: Sequence[Wanted], out: Path) -> PaperTable:
    """The table, from the results files that a repetition has written."""
    items: dict[str, dict[str, list[Item]]] = {}
    idle = {name: why for want in wants for name, why in want.idle.items()}
    notes, tasks = [f"{name}: {why}" for name, why in idle.items()], {}
    for want in wants:
        path = results_file(out, want.data.name)
        if want.missing:
            notes.append(want.missing)
        if want.evaluation is None or not path.is_file():
            continue
        tasks[want.data.name] = len(want.tasks)
        whole = len(want.tasks) * want.evaluation.samples
        of = items.setdefault(want.data.name, {})
        for item in read_results(path).items:
            of.setdefault(item.key.system, []).append(item)
        for system, done in list(of.items()):
            if len(done) < whole:
                notes.append(f"{want.data.name}: {system} has {len(done)} of {whole} runs; run the same command again")
                del of[system]
    rows = [_row(recipe, system.name, system.beside, items) for system in recipe.systems]
    return PaperTable(recipe, rows, notes, tasks)


def _row(recipe: Recipe, system: str, beside: str, items: Mapping[str, Mapping[str, list[Item]]]) -> OurRow:
    own = {name: of[system] for name, of in items.items() if system in of}
    values = [_value(column, own) for column in recipe.columns]
    return OurRow(system, beside, values, sum(map(len, own.values())))


def _value(column: PaperColumn, items: Mapping[str, list[Item]]) -> float | None:
    if any(name not in items for name in column.of):
        return None
    values = [_measured(column.metric, items[name]) for name in column.of]
    known = [value for value in values if value is not None]
    return column.scale * sum(known) / len(known) if len(known) == len(values) else None


def _measured(metric: str, items: Sequence[Item]) -> float | None:
    if metric in OF_A_RUN:
        return sum(map(OF_A_RUN[metric], items)) / len(items)
    kind, _, name = metric.partition(":")
    return (value_mean(name, items) if kind == "value" else METRICS[metric])(items).value


def _line(name: str, cells: Sequence[str], first: int, widths: Sequence[int], more: str = "") -> str:
    row = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{name:<{first}}  {row}{f'  {more}' if more else ''}".rstrip()


def _texts(values: Sequence[float | None]) -> list[str]:
    return [NONE if value is None else f"{value:,.2f}" for value in values]


def _gap(value: float | None) -> str:
    return NONE if value is None else f"{value:+,.2f}"
