"""The state that a run leaves behind, compared as a whole: only what is the case counts, not how it came about.

States are compared by `digest`: SHA-256 over the state with its objects as pairs sorted by name and its lists in their
order. It is the hash that tau-bench publishes, so its recorded hashes can stand in a task. The invariants: the order of
an object's names never matters, that of a list does, and 1, 1.0, "1" and true are four different things.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from concertino_bench.grading import Bench, Grade, Grader, Submission, Verdict
from concertino_bench.tasks import Task

from ._base import shown


class FinalState(Grader):
    """Right if the world's final state equals `metadata["state"]`, or has the hash `metadata["digest"]`."""

    name = "final-state"
    kinds = ("state",)

    async def grade(self, task: Task, submission: Submission, bench: Bench) -> Grade:
        """Grade the submission's state.

        Raises:
            ValueError: the task has neither a state nor a digest, or a state that is no JSON data.
        """
        expected = _expected(task)
        if submission.state is None:
            return Grade(Verdict.UNPARSABLE, "there is no final state; the run had no world", (expected,))
        try:
            found = digest(submission.state)
        except (TypeError, RecursionError) as error:
            return Grade(Verdict.UNPARSABLE, f"the final state is no JSON data: {shown(str(error))}", (expected,))
        if found == expected:
            return Grade(Verdict.RIGHT, "the final state is right", (expected,), (found,))
        if "state" in task.metadata:
            where = difference(task.metadata["state"], submission.state)
            return Grade(Verdict.WRONG, f"the final state differs at {where}", (expected,), (found,))
        reason = f"the final state has the digest {found[:12]}…, expected {expected[:12]}…"
        return Grade(Verdict.WRONG, reason, (expected,), (found,))


def digest(state: Any) -> str:
    """SHA-256 of a state, in hexadecimal.

    Raises:
        TypeError: something in it is no JSON data.
        RecursionError: it is nested too deeply.
    """
    return hashlib.sha256(str(_canonical(state)).encode("utf-8", "surrogatepass")).hexdigest()


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
    same = type(expected) is type(found) and repr(expected) == repr(found)
    return "" if same else f"{path or '/'}: {shown(repr(found))}, expected {shown(repr(expected))}"


def _canonical(state: Any) -> Any:
    if isinstance(state, Mapping):
        if not all(isinstance(name, str) for name in state):
            raise TypeError(f"an object with names that are no texts: {[*state][:3]!r}")
        return tuple((name, _canonical(state[name])) for name in sorted(state))
    if isinstance(state, (list, tuple)):
        return tuple(_canonical(item) for item in state)
    if state is None or isinstance(state, (str, bool, int, float)):
        return state
    raise TypeError(f"a {type(state).__name__}, which is no JSON data")


def _expected(task: Task) -> str:
    if "digest" in task.metadata:
        return str(task.metadata["digest"])
    if "state" not in task.metadata:
        raise ValueError(
            f"{task.id}: expected metadata['state'] or metadata['digest']; the grader `final-state` needs one"
        )
    try:
        return digest(task.metadata["state"])
    except (TypeError, RecursionError) as error:
        raise ValueError(f"{task.id}: metadata['state'] is no JSON data: {error}") from error
