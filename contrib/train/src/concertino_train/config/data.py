"""The section of a settings file about trajectories: how a teacher makes them, and which are selected."""

from __future__ import annotations

from pydantic import Field

from concertino_train.data.gap import GapSettings
from concertino_train.data.outcomes import OutcomeSettings
from concertino_train.data.selecting import SelectionSettings
from concertino_train.settings import Above, Amount, Count, Number, Section

from .sections import Named, StrategySection, TaskSelection


class CollectSection(Section):
    """A teacher works on tasks, and every run is kept as a trace.

    Attributes:
        teacher: who leads: a role or name of the pool, or a function that makes a model of the pool:
            `{name: practice, habits: {...}}` or `module:function`.
        strategy: of the teacher; that of the policy by default. With another, set `rewrite`, or train on it as it is.
        tasks: on what; those of `tasks.train` by default.
        samples: runs of each task, with each pool.
        pools: number of varied pools (`pool.variation`); 0 for the pool without variation. By default 200, in turn,
            where the pool varies, and else 0.
        in_turn: each task is done over one of these pools, in turn; by default over every one.
        temperatures: the teacher works at each of these; where tasks are done in turn, at one of them.
        concurrency: runs at once.
        max_usd: no further run begins once this many $ are spent.
    """

    teacher: str | Named = "orchestrator"
    strategy: StrategySection | None = None
    tasks: list[TaskSelection] = Field(default_factory=list)
    samples: Count = 8
    pools: Number | None = None
    in_turn: bool = False
    temperatures: list[Amount] = Field(default_factory=list)
    concurrency: Count = 16
    max_usd: Above | None = None


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
    select: SelectionSettings = SelectionSettings()
    exclude_rl: bool = False
    exact: bool = False
    roles: list[str] = Field(default_factory=list)
    rewrite: str | None = None
    keep_serial: bool = True
    gap: GapSettings | None = None
    outcomes: OutcomeSettings = OutcomeSettings()
