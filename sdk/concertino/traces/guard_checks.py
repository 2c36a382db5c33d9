"""Checks by guards as people see them: what was looked at, the verdict, and why.

A check is an execution with records of its own, and no call: a board keeps it apart from the rows of calls.
Invariant: a check that failed counts as denied, as it does in the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from concertino.core.display_text import one_line, show_arguments

Verdict = Literal["", "passed", "replaced", "denied", "ended the run", "cancelled"]
VERDICTS: tuple[Verdict, ...] = ("passed", "replaced", "denied", "ended the run", "cancelled")
_ID = re.compile(r"guard\d+\.(?P<stage>question|call|result|answer)\.(?P<about>.+)", re.DOTALL)


@dataclass
class GuardCheck:
    """A check.

    Attributes:
        id: unique in the run.
        name: the guard's.
        stage: at which it looks.
        about: id of the call, or the number of the question or answer.
        status: one of the four, empty until it has ended.
        started, ended: seconds since the run began.
    """

    id: str
    name: str
    stage: str
    about: str
    status: str = ""
    started: float = 0.0
    ended: float = 0.0
    error: Mapping[str, Any] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)
    replayed: bool = False

    @property
    def seconds(self) -> float:
        """How long it took; 0 until it has ended."""
        return self.ended - self.started if self.status else 0.0

    @property
    def subject(self) -> str:
        """What it was about: `question`, `call 1.2`, `result of 1.2`, `answer`, `answer 2`."""
        match self.stage:
            case "call":
                return f"call {self.about}"
            case "result":
                return f"result of {self.about}"
        return self.stage if self.about == "1" else f"{self.stage} {self.about}"

    @property
    def verdict(self) -> Verdict:
        """What was decided; empty until it has ended."""
        if not self.status:
            return ""
        if self.error:
            return "cancelled" if self.error["code"] == "cancelled" else "denied"
        decided: dict[str, Verdict] = {"replace": "replaced", "deny": "denied", "end": "ended the run"}
        return next((word for key, word in decided.items() if key in self.content), "passed")

    @property
    def reason(self) -> str:
        """Why, or what stands in the place of what it saw; empty where it passed."""
        if self.error:
            return f"{self.error['code']}: {self.error['message']}"
        if "replace" in self.content:
            value = self.content["replace"]
            return f"by {show_arguments(value) if isinstance(value, dict) else one_line(value, 200)}"
        return str(self.content.get("deny", self.content.get("end", "")))


def check_of(record: Mapping[str, Any]) -> GuardCheck | None:
    """The check that a record of an execution begins, None if it is of a call or a request."""
    # Almost no execution is a check, and a pattern takes longer than this.
    found = _ID.fullmatch(record["id"]) if record["id"].startswith("guard") else None
    return None if found is None else GuardCheck(record["id"], record["name"], found["stage"], found["about"])


def count_verdicts(checks: Iterable[GuardCheck]) -> dict[str, int]:
    """How often each verdict was given, those that were; `running` for checks that have not ended."""
    given = [check.verdict or "running" for check in checks]
    return {word: given.count(word) for word in (*VERDICTS, "running") if word in given}
