"""Questions for RL: those whose samples came out differently.

A question that is always right or always wrong gives every rollout of a group the same reward, and so no signal. Of k
samples per question those are kept that were right more than `above` and less than `below` of the time; with 0 and 1,
ParaManager's rule: neither all right nor all wrong.

The invariant: a sample counts exactly if its run took place; one that broke says nothing of the question.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from concertino import UsageError
from concertino_bench import Item
from concertino_bench.reports import Results, read_all
from pydantic import Field

from concertino_train.settings import Section, Share


class OutcomeSettings(Section):
    """Which questions are for reinforcement learning.

    Attributes:
        system: whose outcomes, a name or a pattern (`teacher@*`); needed where a file has several systems.
        above, below: share of right samples, both ends left out.
        samples: samples that a question has at least; fewer say too little of it, and one is never mixed.
    """

    system: str = ""
    above: Share = 0.0
    below: Share = 1.0
    samples: Annotated[int, Field(ge=2)] = 2

    def check(self) -> None:
        """See `Section.check`."""
        if self.above >= self.below:
            raise ValueError(f"above={self.above}, below={self.below}: expected above less than below")


@dataclass(frozen=True)
class AskedQuestion:
    """A question, as often as it was asked.

    Attributes:
        task: id.
        right: samples with a right answer.
        samples: all that took place.
    """

    task: str
    right: int
    samples: int

    @property
    def share(self) -> float:
        """Share of right samples."""
        return self.right / self.samples if self.samples else 0.0


@dataclass(frozen=True)
class Mixed:
    """Questions by their outcomes.

    Attributes:
        kept: with mixed outcomes, in the order of the results.
        too_easy, too_hard: right too often, or not often enough.
        too_few: asked too seldom.
        broken: samples that did not take place.
    """

    kept: tuple[AskedQuestion, ...]
    too_easy: tuple[AskedQuestion, ...] = ()
    too_hard: tuple[AskedQuestion, ...] = ()
    too_few: tuple[AskedQuestion, ...] = ()
    broken: int = 0

    @property
    def ids(self) -> frozenset[str]:
        """Ids of the tasks that are kept."""
        return frozenset(each.task for each in self.kept)


def mixed_outcomes(
    results: str | Path | Results | Sequence[str | Path], settings: OutcomeSettings | None = None
) -> Mixed:
    """Sort the questions of results files by their outcomes.

    Raises:
        UsageError: no question has mixed outcomes: says how many were all right and all wrong, and what to do; or the
            files have several systems and none is named.
    """
    asked = settings or OutcomeSettings()
    if not isinstance(results, Results):
        results = read_all([results] if isinstance(results, str | Path) else list(results))
    counts, broken = _counted(_of_system(results, asked.system))
    sorts: dict[str, list[AskedQuestion]] = {name: [] for name in ("kept", "too_easy", "too_hard", "too_few")}
    for each in counts:
        sorts[_sort(each, asked)].append(each)
    found = Mixed(broken=broken, **{name: tuple(each) for name, each in sorts.items()})
    if not found.kept:
        raise UsageError(_nothing(found, asked))
    return found


def _of_system(results: Results, system: str) -> list[Item]:
    names = results.systems
    if system and not fnmatch.filter(names, system):
        raise UsageError(f"the results have no system {system!r}; there are {', '.join(names) or 'none'}")
    if not system and len(names) > 1:
        raise UsageError(
            f"the results have {len(names)} systems ({', '.join(names)}); name one, or several by a "
            f"pattern: system={names[0]!r}"
        )
    return [item for item in results.items if not system or fnmatch.fnmatchcase(item.key.system, system)]


def _counted(items: Sequence[Item]) -> tuple[list[AskedQuestion], int]:
    counts: dict[str, list[int]] = {}
    for item in items:
        pair = counts.setdefault(item.key.task, [0, 0])
        # A run that broke says nothing of its question.
        if not item.error:
            pair[0] += item.right
            pair[1] += 1
    broken = sum(bool(item.error) for item in items)
    return [AskedQuestion(task, right, samples) for task, (right, samples) in counts.items()], broken


def _sort(one: AskedQuestion, settings: OutcomeSettings) -> str:
    if one.samples < settings.samples:
        return "too_few"
    if one.share >= settings.below:
        return "too_easy"
    return "too_hard" if one.share <= settings.above else "kept"


def _nothing(found: Mixed, settings: OutcomeSettings) -> str:
    if not (found.too_easy or found.too_hard or found.too_few):
        return "a dataset with no mixed outcomes: the results hold no sample of any question; collect some first"
    easy, hard, few = len(found.too_easy), len(found.too_hard), len(found.too_few)
    bounds = (settings.above, settings.below) == (0, 1)
    always, never = ("all right", "all wrong") if bounds else (f">= {settings.below:g}", f"<= {settings.above:g}")
    told = f"of {easy + hard + few} questions {easy} were {always}, {hard} {never}"
    told += f" and {few} have fewer than {settings.samples} samples" if few else ""
    step = "harder tasks or a higher temperature" if easy > hard else "easier tasks, a stronger policy or more SFT"
    step = "more samples per question" if few > easy + hard else step
    return f"a dataset with no mixed outcomes: {told}; RL would learn nothing from them: take {step}"
