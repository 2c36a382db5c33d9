"""Whether a policy does what its user prefers: the same tasks, asked with one preference and with another.

The runs of a task are compared with each other by concertino-bench's preference adherence, each preference in turn. A
policy that reads what the user says does better by a preference in the runs that were asked with it than in the others;
one that does not read it does equally well in both. The invariant: nothing is compared but runs of one task by one
policy, so no other system and no baseline is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING

from concertino_bench.metrics import preference_adherence

from concertino_train.rollouts.assignment import Assignment

if TYPE_CHECKING:
    from concertino_bench import Item
    from concertino_bench.metrics import Preference, Value


def wish_of(assignment: Assignment) -> str:
    """What the user says behind the task's question; empty where nothing is."""
    return assignment.text.removeprefix(assignment.task.question).strip()


def preference_figures(asked: Sequence[tuple[Assignment, Item]]) -> dict[str, float]:
    """How well preferences are obeyed; empty with fewer than two.

    Args:
        asked: questions and their results, of one policy.

    Returns:
        `adherence`: the preference adherence of runs that were asked with the preference, mean over preferences, 0 to
        the sum of its weights. `obedience`: what it is more than that of runs of the same tasks that were asked with
        another one; 0 for a policy that does not read it. Both are left out where something that is weighed is unknown.
        And `usd/TEXT`, `seconds/TEXT`, `success/TEXT` of the runs.
    """
    runs: dict[str, list[Item]] = {}
    wishes: dict[str, Preference] = {}
    for assignment, item in asked:
        if assignment.preference is not None and (text := wish_of(assignment)):
            # Adherence compares systems, so each wish has to look like one.
            runs.setdefault(text, []).append(replace(item, key=item.key._replace(system=text)))
            wishes[text] = assignment.preference
    if len(wishes) < 2:
        return {}
    figures: dict[str, float] = {}
    own, others = _by_wish(runs, wishes)
    if own and None not in (*own, *others):
        figures = {"adherence": _mean(own), "obedience": _mean(own) - _mean(others)}
    for text, items in runs.items():
        if not any(item.usage.unpriced for item in items):
            figures[f"usd/{text}"] = _mean([item.usage.usd for item in items])
        figures[f"seconds/{text}"] = _mean([item.seconds for item in items])
        figures[f"success/{text}"] = _mean([float(bool(item.right)) for item in items])
    return figures


def _mean(values: Sequence[float | None]) -> float:
    return fsum(value or 0.0 for value in values) / len(values)


def _by_wish(
    runs: Mapping[str, Sequence[Item]], wishes: Mapping[str, Preference]
) -> tuple[list[float | None], list[float | None]]:
    """The adherence to each preference of the runs asked with it, and of all others."""
    everything = [item for items in runs.values() for item in items]
    own: list[float | None] = []
    others: list[float | None] = []
    for text, preference in wishes.items():
        metric = preference_adherence(everything, preference)
        own.append(_value(metric(runs[text])))
        others.append(_value(metric([item for item in everything if item.key.system != text])))
    return own, others


def _value(measured: Value) -> float | None:
    return None if measured.unknown or not isinstance(measured.value, float) else measured.value
