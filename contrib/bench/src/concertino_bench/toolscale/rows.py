"""Tasks as they are written down, and the `Task` made of one.

The invariant: what a task is graded with comes from carrying out its golden calls, and is never written by hand: the
digest of the final state, and the records that were operated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from concertino_bench.tasks.task import Task
from concertino_bench.toolkits.criteria import Fact
from concertino_bench.toolkits.replaying import GoldenCall

KIND = "toolscale"


@dataclass(frozen=True)
class TaskRow:
    """A task of a domain, before its golden calls were carried out.

    Attributes:
        id: unique in the domain.
        request: what the user writes.
        golden: the calls that solve it.
        required: what has to be told.
        level: how often it was made harder, or how many things it asks for.
        axis: what sort of task it is.
        source: where it came from: an intent, the task that it was made from.
    """

    id: str
    request: str
    golden: tuple[GoldenCall, ...]
    required: tuple[Fact, ...] = ()
    level: int = 0
    axis: str = ""
    source: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "id": self.id,
            "request": self.request,
            "golden": [call.to_json() for call in self.golden],
            "required": [fact if isinstance(fact, str) else list(fact) for fact in self.required],
            "level": self.level,
            "axis": self.axis,
            "source": dict(self.source),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TaskRow:
        """The inverse of `to_json`.

        Raises:
            ValueError: a field is missing or is not what it should be.
        """
        try:
            golden = tuple(GoldenCall.of(call) for call in data["golden"])
            required = tuple(fact if isinstance(fact, str) else tuple(fact) for fact in data.get("required", ()))
            more = data.get("level", 0), data.get("axis", ""), dict(data.get("source", {}))
            return cls(str(data["id"]), str(data["request"]), golden, required, *more)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a task: {type(error).__name__}: {error}; expected id, request, golden") from error


def make_task(
    domain: str,
    row: TaskRow,
    digest: str,
    operations: Mapping[str, Any],
    policy: str,
    *,
    split: str,
    folder: Mapping[str, str] | None = None,
) -> Task:
    """The task of a row.

    Args:
        domain: its name, "ferry".
        digest, operations: of the golden calls: the final state, and the records that they operated.
        policy: of the domain.
        split: "train" or "test".
        folder: where a synthesised domain is; its world is made from it.
    """
    data = row.to_json()
    metadata = {
        **(folder or {}),
        "domain": domain,
        "policy": policy,
        "request": row.request,
        "digest": digest,
        "operations": dict(operations),
        "golden": data["golden"],
        "required": data["required"],
        "reads": True,
    }
    text = question(policy, row.request)
    return Task(f"toolscale/{domain}-{row.id}", text, (), KIND, row.axis, row.level, split, metadata)


def question(instructions: str, request: str) -> str:
    """What the solver is given: the policy, and what the user writes."""
    return f"{instructions.strip()}\n\nThe customer writes:\n{request.strip()}"
