"""A report of checks: one row per requirement and subject, for people (`render`) and for programs (`to_json`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, get_args

from .check import CheckRow, Outcome

_MARKS = {"ok": "ok  ", "failed": "FAIL"}
_WHY = {"missing": "give", "skipped": "skip"}


@dataclass(frozen=True)
class ConformanceReport:
    """What was checked of a package.

    Attributes:
        package: what was asked for.
        rows: in the order of checking, subject by subject.
    """

    package: str
    rows: tuple[CheckRow, ...]

    @property
    def ok(self) -> bool:
        """Whether something was met and nothing failed."""
        return any(row.outcome == "ok" for row in self.rows) and all(row.ok for row in self.rows)

    @property
    def complete(self) -> bool:
        """Whether nothing is left unchecked that its author could make checkable."""
        return all(row.outcome != "missing" for row in self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows are ok, failed, missing and skipped."""
        seen = Counter(row.outcome for row in self.rows)
        return {outcome: seen[outcome] for outcome in get_args(Outcome)}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        rows = [row.to_json() for row in self.rows]
        return {
            "package": self.package,
            "ok": self.ok,
            "complete": self.complete,
            "counts": self.counts,
            "rows": rows,
        }

    def render(self) -> str:
        """Text: a block per subject; a line per requirement with what was seen; a line per reason not to check."""
        lines: list[str] = []
        for subject in dict.fromkeys(row.subject for row in self.rows):
            lines.append(subject)
            rows = [row for row in self.rows if row.subject == subject]
            for row in rows:
                if row.outcome in _MARKS:
                    lines.append(f"  {_MARKS[row.outcome]}  {row.requirement}")
                    lines += [f"        {line}" for line in row.detail.splitlines()]
            reasons = Counter((row.outcome, row.detail) for row in rows if row.outcome not in _MARKS)
            lines += [f"  {_WHY[why]}  {number} of {len(rows)}: {text}" for (why, text), number in reasons.items()]
        counts = ", ".join(f"{number} {outcome}" for outcome, number in self.counts.items())
        verdict = "does not conform"
        if self.ok:
            verdict = "conforms" if self.complete else "conforms as far as it could be checked"
        return "\n".join([*lines, f"{self.package} {verdict}: {counts}"])
