"""The states and answers that calls lead to, compared with those of the gold calls: BFCL's multi-turn categories.

Both are carried out on the simulated programs of the task. As published, the states must be equal, and every answer to
a gold call must be among the answers to the calls that were made so far. Where requests come one by one, this is asked
after each turn that has gold calls, and a call must have been made in it. Else the run has one question with all turns,
and it is asked once, at the end.

The invariant: a task whose programs are not simulated is refused before anybody is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from concertino_bench.machines import Machines, by_turn, machines_of, not_simulated
from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .base import shown
from .final_state import difference

Call = Mapping[str, Any]


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
        gold: list[list[Call]] = [list(turn) for turn in task.metadata["turn_calls"]]
        made = by_turn(_made(submission), task) if task.metadata.get("one_by_one") else [[*_made(submission)]]
        gold = gold if task.metadata.get("one_by_one") else [[call for turn in gold for call in turn]]
        wanted, found = (tuple(_written(call) for turn in turns for call in turn) for turns in (gold, made))
        faults = _faults(task, gold, made)
        marks = tuple(not fault for fault in faults)
        if all(marks):
            count = f"the {len(found)} calls lead to the states of the {len(wanted)} gold calls, and get their answers"
            return Grade(Verdict.RIGHT, f"{count}{', after each turn' if len(gold) > 1 else ''}", wanted, found, marks)
        number = marks.index(False)
        place = f"turn {number + 1}: " if len(gold) > 1 else ""
        return Grade(Verdict.WRONG, f"{place}{faults[number]}", wanted, found, marks)


def _faults(task: Task, gold: Sequence[Sequence[Call]], made: Sequence[Sequence[Call]]) -> list[str]:
    """What is wrong after each turn; empty where nothing is, or where nothing was to be called."""
    ours, theirs = machines_of(task), machines_of(task)
    answers: Counter[str] = Counter()
    found: list[str] = []
    for wanted, calls in zip(gold, made, strict=True):
        answers.update(_answers(ours, calls))
        expected = Counter(_answers(theirs, wanted))
        if not wanted:
            found.append("")
        elif not calls:
            found.append(f"nothing was called, expected {len(wanted)} calls")
        else:
            where, lacking = difference(theirs.state(), ours.state()), expected - answers
            reasons = [f"the states differ at {where}"] if where else []
            reasons += [f"an answer to a gold call is missing: {shown(next(iter(lacking)), 160)}"] if lacking else []
            found.append("; ".join(reasons))
    return found


def _written(call: Call) -> str:
    return shown(f"{call['name']}({call['arguments']})", 120)


def _made(submission: Submission) -> Sequence[Mapping[str, Any]]:
    """The calls that were carried out: as the world of the run has them, else as the run tells them."""
    if isinstance(submission.state, list):
        return submission.state
    return [call for call in submission.calls if call.get("status") == "OK"]


def _answers(machines: Machines, calls: Sequence[Mapping[str, Any]]) -> list[str]:
    return [machines.call(str(call["name"]), dict(call["arguments"])) for call in calls]
