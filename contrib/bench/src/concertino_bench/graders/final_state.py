"""The state that a run leaves behind, compared as a whole: only what is the case counts, not how it came about.

States are compared by `toolkits.digest`, the hash that tau-bench publishes, so its recorded hashes can stand in a task.
A world may hand its digest over with its state (`toolkits.WorldState`); else it is worked out, away from the event
loop. A task may also have facts that the answer must tell, `metadata["required"]`: then both count, and the marks say
which is lacking. The invariants: the order of an object's names never matters, that of a list does, and 1, 1.0, "1" and
true are four different things.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task
from concertino_bench.toolkits.criteria import Fact, mentions
from concertino_bench.toolkits.digests import digest
from concertino_bench.toolkits.world import WorldState

from .base import shown, written


class FinalState(Grader):
    """Right if the world's final state equals `metadata["state"]`, or has the hash `metadata["digest"]`.

    With `metadata["required"]`, a list of facts (texts, or lists of texts one of which will do), the submission's text
    has to mention each of them too.
    """

    name = "final-state"
    kinds = ("state",)
    reads_state = True

    def check(self, task: Task) -> None:
        """Make sure that the task has a state or a digest, and facts that are texts."""
        if "digest" not in task.metadata and "state" not in task.metadata:
            raise ValueError(
                f"{task.id}: expected metadata['state'] or metadata['digest']; the grader `final-state` needs one"
            )
        _required(task)

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Grade the submission's state, and what its text tells."""
        self.check(task)
        # Then both digests are known already; else hashing megabytes would hold the event loop up.
        if isinstance(submission.state, WorldState) and "digest" in task.metadata:
            return _graded(task, submission)
        return await asyncio.to_thread(_graded, task, submission)


def _graded(task: Task, submission: Submission) -> Grade:
    expected, required = _expected(task), _required(task)
    wanted = (expected, *map(_said, required))
    state = submission.state
    if state is None:
        return Grade(Verdict.UNPARSABLE, "there is no final state; the run had no world", wanted)
    try:
        found = state.digest if isinstance(state, WorldState) else digest(state)
    except (TypeError, ValueError, RecursionError) as error:  # ValueError: a number of more digits than can be written
        return Grade(Verdict.UNPARSABLE, f"the final state is not JSON data: {shown(str(error))}", wanted)
    told = [mentions(submission.text, fact) for fact in required]
    seen = (found, *(_said(fact) for fact, mentioned in zip(required, told, strict=True) if mentioned))
    reason = "the final state is right" if found == expected else _differing(task, state, found, expected)
    untold = [_said(fact) for fact, mentioned in zip(required, told, strict=True) if not mentioned]
    if untold:
        reason += f"; the answer does not tell {shown(', '.join(map(repr, untold)), 200)}"
    elif required:
        reason += (
            f", and the answer tells {'what' if len(required) == 1 else f'all {len(required)} facts that'} it must"
        )
    marks = (found == expected, *told)
    values = {"state": float(marks[0]), "told": sum(told) / len(told)} if required else {}
    return Grade(
        Verdict.RIGHT if all(marks) else Verdict.WRONG, reason, wanted, seen, marks if required else (), values
    )


def _differing(task: Task, state: Any, found: str, expected: str) -> str:
    if "state" in task.metadata and (where := difference(task.metadata["state"], state)):
        return f"the final state differs at {where}"
    return f"the final state has the digest {found[:12]}…, expected {expected[:12]}…"


def difference(expected: Any, found: Any, path: str = "") -> str:
    """The first place where two states differ, as a JSON pointer with both values; empty if they are equal."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for name in sorted({*expected, *found}, key=str):
            if name not in found or name not in expected:
                return f"{path}/{name}: {'missing' if name in expected else 'not expected'}"
            if inner := difference(expected[name], found[name], f"{path}/{name}"):
                return inner
        return ""
    if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
        for index, (one, other) in enumerate(zip(expected, found, strict=False)):
            if inner := difference(one, other, f"{path}/{index}"):
                return inner
        if len(expected) != len(found):
            return f"{path or '/'}: {len(found)} items, expected {len(expected)}"
        return ""
    # By type and repr, as the digest does: 1, 1.0 and true are equal in Python.
    same = type(expected) is type(found) and written(expected) == written(found)
    return "" if same else f"{path or '/'}: {shown(written(found))}, expected {shown(written(expected))}"


def _expected(task: Task) -> str:
    if "digest" in task.metadata:
        return str(task.metadata["digest"])
    try:
        return digest(task.metadata["state"])
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{task.id}: metadata['state'] is not JSON data: {error}") from error


def _required(task: Task) -> Sequence[Fact]:
    facts = task.metadata.get("required") or ()
    listed = isinstance(facts, (list, tuple))
    if not listed or not all(
        isinstance(fact, str) or (isinstance(fact, (list, tuple)) and fact and all(isinstance(x, str) for x in fact))
        for fact in facts
    ):
        raise ValueError(
            f"{task.id}: metadata['required'] is {shown(repr(facts))}; expected a list of facts, each a text"
        )
    return tuple(facts)


def _said(fact: Fact) -> str:
    return fact if isinstance(fact, str) else " or ".join(fact)
