"""Worlds that know themselves whether the goal is reached: a puzzle, a grid, a game.

The state says so, by the first of these that it has: `reached` (true or false), `reward` (a number, right from
`least` on), `done` (true or false). The invariant: the solver's text is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .base import shown, written


class EnvironmentGrader(Grader):
    """Right if the world's state says that the goal is reached.

    Args:
        least: the least reward that is right, for worlds that give a reward alone.
    """

    name = "environment"
    kinds = ("environment",)
    reads_state = True

    def __init__(self, least: float = 1.0) -> None:
        self.least = least

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Grade the submission's state; a reward from 0 to 1 is in the values."""
        state = submission.state
        if not isinstance(state, Mapping):
            return Grade(Verdict.UNPARSABLE, "there is no final state; the run had no world")
        reward = state.get("reward")
        values = {"reward": float(reward)} if _is_number(reward) and 0 <= reward <= 1 else {}
        # `done` comes last: an environment may be over because it was lost.
        for name in ("reached", "reward", "done"):
            if name not in state:
                continue
            value = state[name]
            if name == "reward" and _is_number(value):
                reached, said = value >= self.least, f"the reward is {value:g}, the least that is right {self.least:g}"
            elif name != "reward" and isinstance(value, bool):
                reached, said = value, "the world says that the goal is reached" if value else _missed(state)
            else:
                return Grade(Verdict.UNPARSABLE, f"the state's {name!r} is {shown(written(value))}", values=values)
            return Grade(Verdict.RIGHT if reached else Verdict.WRONG, said, values=values)
        names = ", ".join(map(str, [*state][:6])) or "nothing"
        return Grade(Verdict.UNPARSABLE, f"the state has no 'reached', 'reward' or 'done', only {shown(names)}")


def _missed(state: Mapping[str, Any]) -> str:
    why = state.get("reason")
    return f"the goal is not reached: {shown(why)}" if isinstance(why, str) and why else "the goal is not reached"


def _is_number(value: Any) -> TypeGuard[float]:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False
