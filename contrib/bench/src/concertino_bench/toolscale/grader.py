"""The grader of ToolScale tasks: execution correctness, process fidelity, operation completeness, each reported.

What counts is what happened in the run's world: its state says which records were operated, by whomever in the pool,
and a call that was refused or failed has operated nothing. Where a submission has no such state, its calls that
succeeded are carried out again on a fresh database; a plain state is then what the first criterion looks at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task
from concertino_bench.toolkits.criteria import verify
from concertino_bench.toolkits.digests import digest
from concertino_bench.toolkits.drafts import Entry, changed_entries
from concertino_bench.toolkits.replaying import Operated, replay_async
from concertino_bench.toolkits.toolkit import Toolkit
from concertino_bench.toolkits.world import WorldState

from .domains import toolkit_of

_NEEDED = ("digest", "operations", "required", "domain")


class ToolscaleGrader(Grader):
    """Grades tasks of the kind `toolscale`. `Grade.values` has the three criteria, 1.0 or 0.0 each."""

    name: ClassVar[str] = "toolscale"
    kinds: ClassVar[tuple[str, ...]] = ("toolscale",)

    def check(self, task: Task) -> None:
        """Make sure that the task has a golden state, its operations, its facts and its domain."""
        lacking = [name for name in _NEEDED if name not in task.metadata]
        if lacking:
            raise ValueError(f"{task.id}: metadata lacks {', '.join(lacking)}; this grader is for ToolScale tasks")

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Grade one submission."""
        self.check(task)
        meta = task.metadata
        if not (submission.text or submission.calls or submission.state is not None):
            return Grade(Verdict.UNPARSABLE, "nothing was handed in: no text, no call, no state")
        found_digest, found, changed = await _happened(toolkit_of(task), submission)
        verified = verify(
            meta["digest"],
            Operated.from_json(meta["operations"]),
            meta["required"],
            found_digest=found_digest,
            found=found,
            text=submission.text,
            changed=changed,
            reads=meta.get("reads", True),
        )
        names = tuple(criterion.name for criterion in verified.criteria)
        marks = tuple(criterion.passed for criterion in verified.criteria)
        verdict = Verdict.RIGHT if verified.passed else Verdict.WRONG
        met = tuple(name for name, mark in zip(names, marks, strict=True) if mark)
        return Grade(verdict, verified.reason, names, met, marks, dict(zip(names, map(float, marks), strict=True)))


async def _happened(toolkit: Toolkit, submission: Submission) -> tuple[str, Operated, Iterable[Entry]]:
    """The digest of the final state, the records that were operated, and those that differ from the database."""
    state = submission.state
    if isinstance(state, WorldState):
        differing = changed_entries(toolkit.database.data, state)
        return state.digest, Operated(state.operated.read, state.operated.written | differing), differing
    # A call that failed in the run has changed nothing, and could succeed when it is made again.
    made = [_call(call) for call in submission.calls if call.get("status", "OK") == "OK"]
    # Unchecked: the run's own executor let these calls pass.
    done = await replay_async(toolkit, [call for call in made if call["name"] in toolkit.functions()], checked=False)
    if not isinstance(state, dict):
        return done.digest, done.operated, done.operated.written
    differing = changed_entries(toolkit.database.data, state)
    return _digest(toolkit, state), Operated(done.operated.read, done.operated.written | differing), differing


def _digest(toolkit: Toolkit, state: dict[str, Any]) -> str:
    try:
        return toolkit.database.digest(state)
    except TypeError:
        # A state that is no JSON data still gets a digest, which equals none of a real state.
        return digest(str(state))


def _call(call: Any) -> dict[str, Any]:
    """A call of a submission, without the provider before its name."""
    arguments = call.get("arguments")
    return {
        "name": str(call.get("name") or "-").rpartition("/")[2],
        "arguments": arguments if isinstance(arguments, dict) else {},
    }
