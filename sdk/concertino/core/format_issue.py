"""A fault of a model's text: what is wrong, where it stands, and what to write instead.

Invariant: `start` and `end` are character offsets into the text that the model wrote, so that a viewer can mark the
place and a reward can count it; the message alone is enough for a model to mend the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FormatIssue:
    """One fault.

    Attributes:
        code: a word of the reader's table of codes.
        message: what is wrong, what was expected, and the next step.
        start: where it begins in the text.
        end: where it ends.
        repaired: it had one plain reading, which was taken; only a strict reader refuses it.
    """

    code: str
    message: str
    start: int
    end: int
    repaired: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        # Not `asdict`, which took half of a conformance check: a hostile text has thousands of issues.
        told: dict[str, Any] = {"code": self.code, "message": self.message, "start": self.start, "end": self.end}
        if self.repaired:
            told["repaired"] = True
        return told

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FormatIssue:
        """From `to_json`."""
        return cls(data["code"], data["message"], data["start"], data["end"], data.get("repaired", False))

    def line_of(self, text: str) -> int:
        """The line of the text, counted from 1."""
        return text.count("\n", 0, self.start) + 1
