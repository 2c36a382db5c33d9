"""Rewards over recorded runs: what a reward is given, what it gives, and which rewards are installed.

The bench does not know how a reward works. It takes every object of the hook `concertino_rewards` that has a name and
`score_runs`; those of concertino-train have.

The invariant: a reward sees all runs of one system and one task at once, in the order of their samples, as it does in a
training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from concertino import Run, UsageError
from concertino.schema import suggestion

from concertino_bench.tasks.grade import Grade
from concertino_bench.tasks.task import Task

if TYPE_CHECKING:
    from concertino.plugins import PluginManager


@dataclass(frozen=True)
class GradedRun:
    """One finished run with its grade: what a reward is given.

    Attributes:
        run: the run, with its events.
        grade: of its answer.
        group: what the run is compared with: the same for all samples of one system and one task.
        sample: which of them.
        kinds: what each member is by its name, `tool`, `agent`, `model` or `unknown`.
        task: what was asked; None where the tasks are not at hand.
    """

    run: Run
    grade: Grade
    group: str
    sample: int = 0
    kinds: Mapping[str, str] = field(default_factory=dict)
    task: Task | None = None


class RunScore(Protocol):
    """What a reward gives for one run."""

    @property
    def total(self) -> float:
        """The reward."""

    @property
    def components(self) -> Mapping[str, float]:
        """Its parts by name, before they are weighted."""


@runtime_checkable
class RunReward(Protocol):
    """A reward of finished runs."""

    @property
    def name(self) -> str:
        """What people call it."""

    def score_runs(self, runs: Sequence[GradedRun]) -> Sequence[RunScore]:
        """Score runs that are compared with each other; the scores stand in the same order.

        Raises:
            UsageError: the runs lack what it reads; says what.
        """

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A reward from a file.

        Raises:
            UsageError: the file cannot be read, or says something that is not known.
        """

    def to_json(self) -> Mapping[str, Any]:
        """All that decides what it gives, as plain JSON data."""


def installed_run_rewards(manager: PluginManager | None = None) -> dict[str, RunReward]:
    """By name, the rewards of `concertino_rewards` hooks that score runs; single terms are none."""
    from concertino.plugins import default_manager

    found: dict[str, RunReward] = {}
    for each in (manager or default_manager()).named("concertino_rewards"):
        if not isinstance(each, type) and isinstance(each, RunReward):
            found.setdefault(each.name, each)
    return found


def choose_rewards(words: Sequence[str], installed: Mapping[str, RunReward]) -> list[RunReward]:
    """The rewards that words name: an installed one, a file of one, or `all` that are installed.

    Raises:
        UsageError: none is installed, one is not known, or two have one name.
    """
    if words and not installed:
        raise UsageError("no reward is installed; pip install concertino-train brings those of five systems")
    chosen: list[RunReward] = []
    for word in words:
        if word == "all":
            chosen += installed.values()
        elif word in installed:
            chosen.append(installed[word])
        elif Path(word).suffix in (".yaml", ".yml", ".json"):
            chosen.append(type(next(iter(installed.values()))).load(word))
        else:
            hint = suggestion(word, installed, f"there are {', '.join(installed)}")
            raise UsageError(f"there is no reward {word!r}; {hint}")
    names = [each.name for each in chosen]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two rewards are called {twice[0]!r}; name each once")
    return chosen
