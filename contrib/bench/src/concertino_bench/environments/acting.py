"""What every environment here is: an instance that never changes, and a small state that does.

Invariants: the state is made of what was done, never of what it led to, so a snapshot is as long as the actions of the
run, and no caller can write itself a solved state. An action that cannot be *read* raises and changes nothing. One that
is *illegal* is a step: what stands before its first illegal part is done, and the observation says what is wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from concertino import UsageError
from concertino.strategies import TurnState
from concertino.strategies.role_workflow import Stepped

from .rewards import TurnReward


class UnreadableAction(ValueError):
    """What was given is not an action: says what was given and what is expected. The state is as it was."""


class Ran(NamedTuple):
    """The result of a script.

    Attributes:
        ok: it ended without an error.
        stdout: what it printed, also if it failed.
        cause: why it failed.
    """

    ok: bool
    stdout: str
    cause: str = ""


Runner = Callable[[str], Ran]
"""Runs a Python script in a sandbox."""


class Judged(NamedTuple):
    """How the last action went.

    Attributes:
        given: steps that it holds.
        made: steps that were made.
        illegal: why the next one was not; empty if all were made.
    """

    given: int = 0
    made: int = 0
    illegal: str = ""


@dataclass(frozen=True)
class Turn:
    """What the roles of a workflow did in one turn, as far as rewards look at it.

    Attributes:
        before: the snapshot before the turn.
        action: what the acting role's text was read as: moves, fills, a program, an answer; None if unreadable.
        printed: what the programmer's script printed; None if nothing was run.
        ran: whether that script ended without an error.
        tests: tests of the tester, `{"input", "output"}`; None if there were none to read.
        final: it is the last turn. The team reward of sudoku and of maths is 0 before, since the paper gives it at the
            end only.
    """

    before: Any
    action: Any = None
    printed: str | None = None
    ran: bool = False
    tests: Sequence[Mapping[str, str]] | None = None
    final: bool = True

    @classmethod
    def of_state(cls, before: Any, state: TurnState, turn: int | None = None, *, final: bool = True) -> Self:
        """A turn, from what a strategy's machine says of it (`Machine.turn_state`).

        The action is the word of the answering role; the script is that of another role whose tools ran; the tests are
        the word of another role that was read as a list of tests.

        Args:
            before: the snapshot before the turn.
            state: what the roles said.
            turn: words of other turns are left out; None takes all.
            final: whether the run is over behind it.
        """
        # `said` keeps each role's last word, which may be from an earlier turn.
        words = {role: word for role, word in state.said.items() if turn is None or word.turn == turn}
        acting = words.pop(state.answering, None)
        script = next((word for word in words.values() if word.ok is not None), None)
        tests = next((word.value for word in words.values() if word.ok is None and _is_tests(word.value)), None)
        return cls(
            before,
            None if acting is None else acting.value,
            None if script is None else script.result,
            script is not None and script.ok is True,
            tests,
            final,
        )


def _is_tests(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) and "input" in each for each in value)


class ActingEnvironment(ABC):
    """A world with a state, as `concertino.strategies.role_workflow.Environment` has it.

    Attributes:
        domain: its name among the rewards: "plan-path".
        tells_reward: whether callers may see the reward of a step; not where it would tell hidden tests or answers.
        last: how the last action went.
        reward: of the last action.
    """

    domain: ClassVar[str]
    tells_reward: ClassVar[bool] = True

    def __init__(self, run: Runner | None = None) -> None:
        self._run = run
        self.last = Judged()
        self.reward = 0.0

    # -- the environment -------------------------------------------------------------------------------------------

    def reset(self, task: str = "") -> str:
        """Begin again. The instance was given when the environment was made, so the text of the task is not read."""
        self.last, self.reward = Judged(), 0.0
        self._begin()
        return self.observation

    def step(self, action: Any) -> Stepped:
        """Act.

        Raises:
            UnreadableAction: it is not an action.
            UsageError: scripts are to be run, and the environment was made without a runner.
        """
        scripts = self.scripts(action)
        if scripts and self._run is None:
            raise UsageError(f"{type(self).__name__} runs scripts to judge actions; make it with run=ScriptRunner()")
        # In two halves, since a world runs the same scripts through its pool instead, where they are traced.
        return self.judge(action, [self._run(script) for script in scripts] if self._run else [])

    @abstractmethod
    def snapshot(self) -> Any:
        """The state as plain JSON data, independent of this object."""

    @abstractmethod
    def restore(self, snapshot: Any) -> None:
        """Take up a state.

        Raises:
            ValueError: it is not a snapshot of this instance.
        """

    # -- what there is to know -------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def observation(self) -> str:
        """What is to be seen, in words."""

    @property
    @abstractmethod
    def reached(self) -> bool:
        """Whether the goal is reached."""

    @property
    def done(self) -> bool:
        """Whether the goal is reached, or can no longer be."""
        return self.reached

    # -- acting in two halves --------------------------------------------------------------------------------------

    def scripts(self, action: Any) -> tuple[str, ...]:
        """Scripts to run in a sandbox before `judge`; most actions need none.

        Raises:
            UnreadableAction: it is not an action.
        """
        return ()

    @abstractmethod
    def judge(self, action: Any, ran: Sequence[Ran] = ()) -> Stepped:
        """Act, given the result of the `scripts` of the action."""

    # -- rewards ---------------------------------------------------------------------------------------------------

    def reward_scripts(self, turn: Turn) -> tuple[str, ...]:
        """Scripts to run before `turn_reward`."""
        return ()

    @abstractmethod
    def turn_reward(self, turn: Turn, ran: Sequence[Ran] = ()) -> TurnReward:
        """Team and local rewards of a turn that began in `turn.before`. Leaves the state as it is."""

    # -- for those below -------------------------------------------------------------------------------------------

    @abstractmethod
    def _begin(self) -> None:
        """Set the state of the start."""

    def _stepped(self, judged: Judged, reward: float, told: str = "") -> Stepped:
        self.last, self.reward = judged, reward
        parts = [told, judged.illegal and f"Not legal: {judged.illegal}", self.observation]
        return Stepped("\n".join(filter(None, parts)), self.done, reward)


def refuse_snapshot(snapshot: Any, expected: str) -> ValueError:
    """The error for what is not a snapshot."""
    return ValueError(f"{str(snapshot)[:80]!r} is not a state of this task; expected {expected}, as the last call gave")
