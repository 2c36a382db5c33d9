"""What is rolled out: a task, over a pool, by a strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from concertino import Budget, Pool, Shortlist, Strategy, UsageError
from concertino.strategies import Step, TaskContext
from concertino_bench import Task, TaskWorld
from concertino_bench.metrics import Preference
from concertino_bench.tasks.system import Counterfactual


@dataclass(frozen=True)
class Assignment:
    """One question to roll out. All rollouts of a group have the same one, so their rewards can be compared.

    Attributes:
        task: what is asked, and what a right answer holds.
        pool: what may be called, without the policy. Roles that it binds (but `orchestrator`) are played by its
            models, all others by the policy.
        strategy: the paradigm.
        question: what is asked in the task's words and more, such as the user's preference; the task's question by
            default.
        budget: of each rollout.
        preference: what the user prefers.
        world: makes the world of a rollout.
        change: what is changed of the pool, to see whether the choice follows the descriptions.
        owners: whose description each member bears, where they are permuted.
        shortlist: what the policy sees of the pool; all of it by default.
        source: of what settings ask, which of their questions: `("train", 7)`. Another process makes it again by that.
    """

    task: Task
    pool: Pool
    strategy: Strategy
    question: str = ""
    budget: Budget | None = None
    preference: Preference | None = None
    world: Callable[[Task], TaskWorld] | None = None
    change: Counterfactual | Literal[""] = ""
    owners: Mapping[str, str] = field(default_factory=dict)
    shortlist: Shortlist | None = None
    source: tuple[str, int] | None = None

    @property
    def text(self) -> str:
        """What is asked."""
        return self.question or self.task.question

    def pool_in(self, world: TaskWorld | None) -> Pool:
        """The pool of a rollout in a world: with the members of the world, and as the shortlist shows it."""
        pool = self.pool if world is None else self.pool.adding(*world.members())
        return pool if self.shortlist is None else self.shortlist(self.text, pool)

    def first_step(self) -> Step:
        """What the strategy does first, before anything has run."""
        pool = self.pool_in(None if self.world is None else self.world(self.task))
        return self.strategy.begin(TaskContext(self.text, pool.to_openai())).step()


@dataclass(frozen=True)
class TokenLimits:
    """How much a policy may write and read.

    Attributes:
        turn: tokens of one text.
        total: sampled tokens of a whole rollout, over all roles.
        context: tokens of one sequence, read and written; None for no limit but the policy's.
    """

    turn: int = 256
    total: int = 4096
    context: int | None = None

    def __post_init__(self) -> None:
        for name in ("turn", "total", "context"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"TokenLimits({name}={value!r}): expected 1 or more")

    def room(self, sampled: int, read: int) -> int:
        """Tokens that the next text may have; 0 or less where there is no room.

        Args:
            sampled: tokens sampled so far in the rollout.
            read: tokens of the sequence so far.
        """
        left = min(self.turn, self.total - sampled)
        return left if self.context is None else min(left, self.context - read)
