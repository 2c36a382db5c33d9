"""Turns of role workflows as rewards read them: who did what, and what the environment says of it.

An environment judges a turn from its state before it and the last words of the roles. Where a role speaks before the
acting one, there is no action until that one has spoken: the team reward of its candidates is then the same for all.
"""

from __future__ import annotations

from typing import Any

from concertino.strategies import Done, Machine, TurnState
from concertino_bench import Task
from concertino_bench.environments import (
    COEFFICIENTS,
    DOMAINS,
    Ran,
    ScriptRunner,
    Turn,
    TurnReward,
    environment_of,
)

from concertino_train.episodes import RoleTurn


class Scripts:
    """Runs the scripts that judging a turn takes, in one sandbox that is opened at the first one."""

    def __init__(self) -> None:
        self._runner: ScriptRunner | None = None

    def run(self, script: str) -> Ran:
        """Run one; blocks."""
        if self._runner is None:
            self._runner = ScriptRunner()
        return self._runner(script)

    def close(self) -> None:
        """Give the sandbox back."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None


class RoleTurns:
    """Watches one rollout and keeps its finished turns.

    Attributes:
        domain: `plan-path`, `code`, ...; empty where the task has no environment.
        turns: of the roles, of all turns that are over.
    """

    def __init__(self, task: Task, scripts: Scripts) -> None:
        name = str(task.metadata.get("environment", ""))
        self.domain = name if name in DOMAINS else ""
        self.turns: list[RoleTurn] = []
        self._task, self._scripts = task, scripts
        self._over = 0
        self._before: Any = None

    def fork(self) -> RoleTurns:
        """An independent copy."""
        # The runner is shared on purpose: a sandbox for each of K twins would cost more than their scripts.
        twin = RoleTurns(self._task, self._scripts)
        twin.turns, twin._over, twin._before = list(self.turns), self._over, self._before
        return twin

    def look(self, machine: Machine) -> None:
        """See whether a turn is over; call it whenever the machine waits for the policy, or is done."""
        state = machine.turn_state() if self.domain else None
        if state is None:
            return
        if state.finished > self._over:
            self._over = state.finished
            self.turns += self._turns(machine, state, state.finished)
        if self._before is None or state.finished >= self._over:
            self._before = state.state

    def candidate(self, machine: Machine, turn: int, role: str) -> RoleTurn:
        """What one role has just done in a turn, which need not be over."""
        state = machine.turn_state()
        if state is None:
            return RoleTurn(turn, role)
        turns = self._turns(machine, state, turn)
        # A role whose words could not be judged has no scores, but it has its part in the result of the turn.
        team = max((each.team for each in turns), default=0.0)
        return next((each for each in turns if each.role == role), RoleTurn(turn, role, team))

    def _turns(self, machine: Machine, state: TurnState, turn: int) -> list[RoleTurn]:
        """A turn of each role; one that the environment has no scores for earns what the team does."""
        reward = self._judge(machine, state, turn)
        others = [
            name for name, word in state.said.items() if word.turn == turn and name not in COEFFICIENTS[self.domain]
        ]
        scored = [each for each in RoleTurn.of(turn, reward) if not others or each.role in state.said]
        return [*scored, *(RoleTurn(turn, name, reward.team) for name in others)]

    def _judge(self, machine: Machine, state: TurnState, turn: int) -> TurnReward:
        environment = environment_of(self._task, run=self._scripts.run)
        environment.reset()
        before = environment.snapshot() if self._before is None else self._before
        final = isinstance(machine.step(), Done)
        done = Turn.of_state(before, state, turn, final=final)
        ran = [self._scripts.run(script) for script in environment.reward_scripts(done)]
        return environment.turn_reward(done, ran)
