"""The issues of one text, collected while it is read.

Invariant: at most `LIMIT` of each sort are kept, so that a hostile text costs no more than a bad one; a fault is never
displaced by a repair, so a text with a fault always has one on record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from concertino.core.format_issue import FormatIssue
from concertino.schema import near_names
from concertino.text.foreign_text import break_control_tokens, quote_foreign

LIMIT = 20
"""Faults, and repairs, kept of one text."""


class FormatIssues:
    """Faults and repairs of one text.

    Args:
        strict: refuse also what has one plain reading.
    """

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.faults: list[FormatIssue] = []
        self.repairs: list[FormatIssue] = []

    def refuse(self, code: str, message: str, start: int, end: int) -> None:
        """Note a fault."""
        if len(self.faults) < LIMIT:
            self.faults.append(FormatIssue(code, message, start, end))

    def mend(self, code: str, message: str, start: int, end: int) -> None:
        """Note what has one plain reading: a repair, for a strict reader a fault."""
        if self.strict:
            self.refuse(code, message, start, end)
        elif len(self.repairs) < LIMIT:
            self.repairs.append(FormatIssue(code, message, start, end, True))

    @property
    def full(self) -> bool:
        """Whether no further fault is kept; the words of one, with its near names, need not be made then."""
        return len(self.faults) >= LIMIT

    def all(self) -> tuple[FormatIssue, ...]:
        """All of them, in the order of the text."""
        return tuple(sorted((*self.faults, *self.repairs), key=lambda issue: (issue.start, issue.end, issue.code)))


class CallFormatIssues(FormatIssues):
    """As `FormatIssues`, with faults of single calls too: such a call is not run, and its siblings are."""

    def __init__(self, strict: bool) -> None:
        super().__init__(strict)
        self.of_calls: list[FormatIssue] = []

    def broken(self, code: str, message: str, start: int, end: int) -> None:
        """Note the fault of one call."""
        if len(self.of_calls) < LIMIT:
            self.of_calls.append(FormatIssue(code, message, start, end))

    def all(self) -> tuple[FormatIssue, ...]:
        """All of them, in the order of the text."""
        return tuple(sorted((*super().all(), *self.of_calls), key=lambda issue: (issue.start, issue.end, issue.code)))


def shown(text: str, limit: int = 60) -> str:
    """A text in quotes, shortened, fit for a message."""
    # Sliced before the split, so that a text of megabytes costs no more than a short one.
    line = " ".join(text[: 4 * limit].split())
    cut = line if len(line) <= limit else line[: limit - 1] + "…"
    return f'"{quote_foreign(cut)}"'


def report(text: str, issues: Iterable[FormatIssue]) -> str:
    """Faults as a model reads them: one line each, with code, line and words."""
    return break_control_tokens(
        "\n".join(f"- {issue.code} (line {issue.line_of(text)}): {issue.message}" for issue in issues)
    )


def suggestion(name: str, known: Collection[str]) -> str:
    """A near name, or all names."""
    near = near_names(name, known, limit=1)
    if near:
        return f"did you mean {near[0]}?"
    some = sorted(known)
    return f"there are {', '.join(some[:12])}{', …' if len(some) > 12 else ''}" if some else "there are none"
