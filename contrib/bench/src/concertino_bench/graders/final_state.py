"""The state that a run leaves behind, compared as a whole: only what is the case counts, not how it came about.

States are compared by `toolkits.digest`, the hash that tau-bench publishes, so its recorded hashes can stand in a task.
A world may hand its digest over with its state (`toolkits.WorldState`); else it is worked out, away from the event
loop. A task may also have facts that must be told, `metadata["required"]`, assertions about the state that its world
checks, `"assertions"`, and calls that must be made, `"actions"`: then all of them count, and the marks say which is
lacking. The invariants: the order of an object's names never matters, that of a list does, and 1, 1.0, "1" and true are
four different things.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task
from concertino_bench.toolkits.criteria import Fact, mentions
from concertino_bench.toolkits.digests import digest
from concertino_bench.toolkits.replaying import GoldenCall
from concertino_bench.toolkits.world import WorldState

from .base import shown, written


class FinalState(Grader):
    """Right if the world's final state equals `metadata["state"]`, or has the hash `metadata["digest"]`.

    Where a task has no state to compare, it needs `metadata["assertions"]`, a list of `{"name", "arguments",
    "expected"}` that the world checks, `metadata["actions"]`, a list of `{"name", "arguments", "compare"}`, where
    `compare` names the arguments that count and null means all, or `metadata["statements"]`, for the grader
    `judged-state`. With `metadata["required"]`, a list of facts (texts, or lists of texts one of which will do), what
    was said has to mention each of them too.
    """

    name = "final-state"
    kinds = ("state",)
    reads_state = True

    def check(self, task: Task) -> None:
        """Make sure that the task has something to compare with, and facts that are texts."""
        if not _compares(task) and not any(task.metadata.get(name) for name in ("assertions", "actions", "statements")):
            raise ValueError(
                f"{task.id}: expected metadata['state'] or metadata['digest']; the grader `final-state` needs one, or "
                "'assertions' or 'actions'"
            )
        _required(task)

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Grade the submission's state, what was done, and what was said."""
        self.check(task)
        # Then both digests are known already; else hashing megabytes would hold the event loop up.
        if isinstance(submission.state, WorldState) and ("digest" in task.metadata or not _compares(task)):
            return _graded(task, submission)
        return await asyncio.to_thread(_graded, task, submission)


class _Part(NamedTuple):
    """One thing that counts: whether it is right, what was wanted, what was found, and why it is wrong."""

    right: bool
    wanted: str
    found: str
    fault: str


def _compares(task: Task) -> bool:
    return "digest" in task.metadata or "state" in task.metadata


def _graded(task: Task, submission: Submission) -> Grade:
    state, required = submission.state, _required(task)
    expected = (_expected(task),) if _compares(task) else ()
    if state is None:
        wanted = (*expected, *map(_said, required))
        return Grade(Verdict.UNPARSABLE, "there is no final state; the run had no world", wanted)
    checked = (*task.metadata.get("assertions", ()), *task.metadata.get("actions", ()))
    if checked and not isinstance(state, WorldState):
        why = "assertions and actions can be checked only in the world of the run"
        return Grade(Verdict.UNPARSABLE, why, expected)
    try:
        compared = [_compared(task, state, each) for each in expected]
    except (TypeError, ValueError, RecursionError) as error:  # ValueError: a number of more digits than can be written
        return Grade(Verdict.UNPARSABLE, f"the final state is not JSON data: {shown(str(error))}", expected)
    done = [*_asserted(task, state), *_acted(task, state)] if isinstance(state, WorldState) else []
    text = told_text(submission)
    told = [(fact, mentions(text, fact)) for fact in required]
    parts = [*compared, *done, *(_Part(said, _said(fact), _said(fact), "") for fact, said in told)]
    values = {"state": float(all(part.right for part in (*compared, *done)))}
    values |= {"told": sum(said for _, said in told) / len(told)} if told else {}
    return Grade(
        Verdict.RIGHT if all(part.right for part in parts) else Verdict.WRONG,
        _reason([*compared, *done], told),
        tuple(part.wanted for part in parts),
        tuple(part.found for part in parts if part.found and (part.right or part in compared)),
        tuple(part.right for part in parts) if len(parts) > len(compared) else (),
        values if len(parts) > len(compared) else {},
    )


def _reason(parts: Sequence[_Part], told: Sequence[tuple[Fact, bool]]) -> str:
    faults = [part.fault for part in parts if not part.right]
    reason = "; ".join(faults[:3]) or "the final state is right"
    untold = [_said(fact) for fact, said in told if not said]
    if untold:
        return f"{reason}; the answer does not tell {shown(', '.join(map(repr, untold)), 200)}"
    if told:
        return f"{reason}, and the answer tells {'what' if len(told) == 1 else f'all {len(told)} facts that'} it must"
    return reason


def _compared(task: Task, state: Any, expected: str) -> _Part:
    found = state.digest if isinstance(state, WorldState) else digest(state)
    return _Part(found == expected, expected, found, _differing(task, state, found, expected))


def _asserted(task: Task, state: WorldState) -> list[_Part]:
    """The task's assertions, as the world found them."""
    named = [str(GoldenCall.of(each)) for each in task.metadata.get("assertions", ())]
    # A state of another task's world says nothing of these.
    if len(named) != len(state.unmet):
        return [_Part(False, name, "", f"{name} was not checked in this world") for name in named]
    return [_Part(not why, name, name, why) for name, why in zip(named, state.unmet, strict=True)]


def _acted(task: Task, state: WorldState) -> list[_Part]:
    """The calls that had to be made."""
    parts = []
    for action in task.metadata.get("actions", ()):
        name = str(GoldenCall.of(action))
        made = any(_is_made(action, *call) for call in state.calls)
        parts.append(_Part(made, name, name, f"the call {name} was not made"))
    return parts


def _is_made(action: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> bool:
    if name != action["name"]:
        return False
    counted = action.get("compare")
    # As published: what the call leaves out does not count against it.
    names = arguments if counted is None else counted
    return all(
        (key in arguments) == (key in action["arguments"]) and arguments.get(key) == action["arguments"].get(key)
        for key in names
    )


def told_text(submission: Submission) -> str:
    """All that the tested side has told: to the simulated user, and in its answer."""
    said = submission.state.said if isinstance(submission.state, WorldState) else ()
    return "\n".join([*(turn.text for turn in said if turn.who == "agent"), submission.text])


def conversation(submission: Submission) -> str:
    """What was said on both sides, and the answer."""
    said = submission.state.said if isinstance(submission.state, WorldState) else ()
    lines = [f"{turn.who}: {turn.text}" for turn in said]
    return "\n".join([*lines, f"agent, at the end: {submission.text}"])


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
