"""Why a text was refused, said to a program (`code`, `position`) and to a model (`str(error)`).

    try:
        reading = read_json(text)
    except ReadingError as error:
        observation = {"code": error.code, "line": error.line, "message": str(error)}

A code is stable and meant for branching; the message names what was found, where, and what to write
instead, in at most 200 characters. Positions count characters of the text given, from 0; lines and columns
count from 1. For a string that itself holds an object, they count inside the decoded string.
"""

from __future__ import annotations

from typing import Literal

ReadingCode = Literal[
    "ambiguous-escape",
    "duplicate-key",
    "latex-escape",
    "lone-surrogate",
    "not-an-object",
    "not-finite",
    "not-json",
    "nul",
    "several-objects",
    "too-deep",
    "too-large",
    "too-many-digits",
    "truncated",
]

_MESSAGE_CHARS = 200
_SNIPPET_CHARS = 40
_SNIPPET_BEFORE = 20


class ReadingError(ValueError):
    """The text has no value, or more than one; `str()` is a direction of at most 200 characters."""

    def __init__(self, code: ReadingCode, problem: str, position: int, line: int, column: int, snippet: str) -> None:
        super().__init__(code, problem, position, line, column, snippet)
        self.code: ReadingCode = code
        self.problem = problem
        self.position = position
        self.line = line
        self.column = column
        self.snippet = snippet

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}"
        message = f"{where}: {self.problem}"
        near = f" Near: {self.snippet}"
        if self.snippet and len(message) + len(near) <= _MESSAGE_CHARS:
            message += near
        return message if len(message) <= _MESSAGE_CHARS else message[: _MESSAGE_CHARS - 1] + "…"


def refusal(code: ReadingCode, problem: str, text: str, position: int) -> ReadingError:
    """Build the error for `position` in `text`; the caller raises it."""
    position = max(0, min(position, len(text)))
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    start = max(0, min(position - _SNIPPET_BEFORE, len(text) - _SNIPPET_CHARS))
    # A character that cannot be printed would break the log or the prompt that shows the error.
    shown = "".join(c if c.isprintable() else " " for c in text[start : start + _SNIPPET_CHARS])
    return ReadingError(code, problem, position, line, column, shown)


def quoted(text: str, limit: int = 24) -> str:
    """`text` in quotes, shortened to `limit` characters, for use inside a problem."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")
