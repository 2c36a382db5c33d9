"""The grader of ToolScale tasks: execution correctness, process fidelity, operation completeness, each reported.

The calls of a submission are carried out anew on a fresh database to see which records they operated; the state that
the run really ended with is what the first criterion looks at, where the submission has one.
"""

from __future__ import annotations

from typing import Any, ClassVar

from concertino_bench.grading import Bench, Grade, Grader, Submission, Verdict
from concertino_bench.tasks import Task
from concertino_bench.toolkits import Operated, Toolkit, changed_entries, digest, replay_async, verify

from .domains import toolkit_of

_NEEDED = ("digest", "operations", "required", "domain")


class ToolscaleGrader(Grader):
    """Grades tasks of the kind `toolscale`. `Grade.values` has the three criteria, 1.0 or 0.0 each."""

    name: ClassVar[str] = "toolscale"
    kinds: ClassVar[tuple[str, ...]] = ("toolscale",)

    async def grade(self, task: Task, submission: Submission, bench: Bench) -> Grade:
        """Grade one submission.

        Raises:
            ValueError: the task has no golden state.
            DataError: the domain that it names cannot be opened.
        """
        meta = task.metadata
        lacking = [name for name in _NEEDED if name not in meta]
        if lacking:
            raise ValueError(f"{task.id}: metadata lacks {', '.join(lacking)}; this grader is for ToolScale tasks")
        if not (submission.text or submission.calls or submission.state is not None):
            return Grade(Verdict.UNPARSABLE, "nothing was handed in: no text, no call, no state")
        toolkit = toolkit_of(task).fresh()
        calls = [call for call in map(_call, submission.calls) if call["name"] in toolkit.functions()]
        done = await replay_async(toolkit, calls, checked=False)
        state = submission.state if isinstance(submission.state, dict) else None
        found, changed = done.operated, sorted(done.operated.written)
        if state is not None:
            differing = changed_entries(toolkit.database.data, state)
            found, changed = Operated(found.read, found.written | differing), sorted(differing)
        verified = verify(
            meta["digest"], Operated.from_json(meta["operations"]), meta["required"],
            found_digest=done.digest if state is None else _digest(toolkit, state), found=found, text=submission.text,
            changed=changed, reads=meta.get("reads", True),
        )  # fmt: skip
        names = tuple(criterion.name for criterion in verified.criteria)
        marks = tuple(criterion.passed for criterion in verified.criteria)
        verdict = Verdict.RIGHT if verified.passed else Verdict.WRONG
        met = tuple(name for name, mark in zip(names, marks, strict=True) if mark)
        return Grade(verdict, verified.reason, names, met, marks, dict(zip(names, map(float, marks), strict=True)))


def _digest(toolkit: Toolkit, state: dict[str, Any]) -> str:
    try:
        return toolkit.database.digest(state)
    except TypeError:
        return digest(str(state))


def _call(call: Any) -> dict[str, Any]:
    """A call of a submission, without the provider before its name."""
    arguments = call.get("arguments")
    return {"name": str(call.get("name") or "-").rpartition("/")[2],
            "arguments": arguments if isinstance(arguments, dict) else {}}  # fmt: skip
