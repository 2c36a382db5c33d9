"""The states and answers that calls lead to, compared with those of the gold calls: BFCL's multi-turn categories.

Both are carried out on the simulated programs of the task. As published, the states must be equal, and every answer to
a gold call must be among the answers to the calls that were made. Other than published, the comparison is made once,
after the last turn, for a run has one question; and turns in which nothing is to be called are not told from others.

The invariant: a task whose programs are not simulated is refused before anybody is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from concertino_bench.machines import Machines, machines_of, not_simulated
from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .base import shown
from .final_state import difference


class CallStates(Grader):
    """Right if the calls lead to the states of the gold calls, and get their answers."""

    name = "call-states"

    def check(self, task: Task) -> None:
        """Make sure that the programs behind the task's functions are simulated."""
        if why := not_simulated(task):
            raise ValueError(f"{task.id}: {why}; `call-match` compares the calls themselves")

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Carry out both series of calls, and compare."""
        self.check(task)
        gold = [call for turn in task.metadata["turn_calls"] for call in turn]
        made = _made(submission)
        wanted = tuple(shown(f"{call['name']}({call['arguments']})", 120) for call in gold)
        if not made and gold:
            return Grade(Verdict.WRONG, f"nothing was called, expected {len(gold)} calls", wanted)
        ours, theirs = machines_of(task), machines_of(task)
        answers, expected = _answers(ours, made), _answers(theirs, gold)
        where = difference(theirs.state(), ours.state())
        lacking = Counter(expected) - Counter(answers)
        marks = (not where, not lacking)
        found = tuple(shown(f"{call['name']}({call['arguments']})", 120) for call in made)
        if all(marks):
            reason = f"the {len(made)} calls lead to the states of the {len(gold)} gold calls, and get their answers"
            return Grade(Verdict.RIGHT, reason, wanted, found, marks)
        reasons = [f"the states differ at {where}"] if where else []
        reasons += [f"an answer to a gold call is missing: {shown(next(iter(lacking)), 160)}"] if lacking else []
        return Grade(Verdict.WRONG, "; ".join(reasons), wanted, found, marks)


def _made(submission: Submission) -> Sequence[Mapping[str, Any]]:
    """The calls that were carried out: as the world of the run has them, else as the run tells them."""
    if isinstance(submission.state, list):
        return submission.state
    return [call for call in submission.calls if call.get("status") == "OK"]


def _answers(machines: Machines, calls: Sequence[Mapping[str, Any]]) -> list[str]:
    return [machines.call(str(call["name"]), dict(call["arguments"])) for call in calls]
