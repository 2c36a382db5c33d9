"""A report of checks: one row per requirement and subject, for people (`render`) and for programs (`to_json`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ._check import Row

_MARKS = {"ok": "ok  ", "failed": "FAIL"}


@dataclass(frozen=True)
class Report:
    """What was checked of a package.

    Attributes:
        package: what was asked for.
        rows: in the order of checking, subject by subject.
    """

    package: str
    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Whether something was met and nothing failed."""
        return any(row.outcome == "ok" for row in self.rows) and all(row.ok for row in self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows are ok, failed and skipped."""
        seen = Counter(row.outcome for row in self.rows)
        return {outcome: seen[outcome] for outcome in ("ok", "failed", "skipped")}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        rows = [row.to_json() for row in self.rows]
        return {"package": self.package, "ok": self.ok, "counts": self.counts, "rows": rows}

    def render(self) -> str:
        """Text: a block per subject; a line per requirement, with what was seen below; a line per reason to skip."""
        lines: list[str] = []
        for subject in dict.fromkeys(row.subject for row in self.rows):
            lines.append(subject)
            rows = [row for row in self.rows if row.subject == subject]
            for row in rows:
                if row.outcome != "skipped":
                    lines.append(f"  {_MARKS[row.outcome]}  {row.requirement}")
                    lines += [f"        {line}" for line in row.detail.splitlines()]
            reasons = Counter(row.detail for row in rows if row.outcome == "skipped")
            lines += [f"  skip  {number} of {len(rows)}: {reason}" for reason, number in reasons.items()]
        counts = ", ".join(f"{number} {outcome}" for outcome, number in self.counts.items())
        verdict = "conforms" if self.ok else "does not conform"
        return "\n".join([*lines, f"{self.package} {verdict}: {counts}"])
