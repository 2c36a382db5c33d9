"""The section of a settings file about trajectories: how a teacher makes them, and which are selected."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .sections import Above, Amount, Count, Named, Number, Section, Share, StrategySection, TaskSelection


class CollectSection(Section):
    """A teacher works on tasks, and every run is kept as a trace.

    Attributes:
        teacher: who leads: a role or name of the pool, or a function that makes a model of the pool:
            `{name: practice, habits: {...}}` or `module:function`.
        strategy: of the teacher; that of the policy by default. With another, set `rewrite`, or train on it as it is.
        tasks: on what; those of `tasks.train` by default.
        samples: runs of each task, with each pool.
        pools: number of varied pools (`pool.variation`) for every task; 0 for the pool without variation.
        temperatures: the teacher works at each of these.
        concurrency: runs at once.
        max_usd: no further run begins once this many $ are spent.
    """

    teacher: str | Named = "orchestrator"
    strategy: StrategySection | None = None
    tasks: list[TaskSelection] = Field(default_factory=list)
    samples: Count = 8
    pools: Number = 0
    temperatures: list[Amount] = Field(default_factory=list)
    concurrency: Count = 16
    max_usd: Above | None = None


class SelectSection(Section):
    """Which trajectories are taken; see `concertino_train.data.SelectionSettings`."""

    per_question: Count = 1
    recovery: Literal["first", "only", "any"] = "first"
    tool_share: Share | None = 0.5
    least_calls: Number = 0
    most: Count | None = None


class GapSection(Section):
    """GAP's filters; see `concertino_train.data.GapSettings`."""

    least_searches: Number = 3
    parallel_share: Share | None = 0.6
    most_tokens: Count | None = 2000
    searches: list[str] = Field(default_factory=lambda: ["*"])


class OutcomeSection(Section):
    """Which questions are for reinforcement learning; see `concertino_train.data.OutcomeSettings`."""

    system: str = ""
    above: Share = 0.0
    below: Share = 1.0
    samples: Count = 2


class DataSection(Section):
    """Trajectories for supervised learning.

    Attributes:
        results: results files whose traces are chosen from; what `collect` writes by default.
        sets: folders of sets that are learnt from; what is made of `results` by default.
        collect: how a teacher makes trajectories.
        select: which are taken.
        exclude_rl: leave out questions that `tasks.train` has.
        exact: teach only texts without any issue.
        roles: only conversations of these roles; all by default.
        rewrite: serial trajectories become parallel ones of this strategy, whose turns hold several calls.
        keep_serial: what cannot be rewritten stays as it is.
        gap: GAP's filters.
        outcomes: filter `tasks.train` by the outcomes in `tasks.outcomes`.
    """

    results: list[str] = Field(default_factory=list)
    sets: list[str] = Field(default_factory=list)
    collect: CollectSection = CollectSection()
    select: SelectSection = SelectSection()
    exclude_rl: bool = False
    exact: bool = False
    roles: list[str] = Field(default_factory=list)
    rewrite: str | None = None
    keep_serial: bool = True
    gap: GapSection | None = None
    outcomes: OutcomeSection = OutcomeSection()
