"""What graders of texts share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from concertino.text.json import ReadingError, read_json

from concertino_bench.tasks.task import Task


def golds(task: Task) -> tuple[str, ...]:
    """The accepted texts of a task with one answer: the answer, then `metadata["aliases"]`.

    Raises:
        ValueError: the task has no answer or several, or its aliases are not a list of texts.
    """
    aliases = task.metadata.get("aliases", ())
    if isinstance(aliases, str) or not all(isinstance(alias, str) for alias in aliases):
        raise ValueError(f"{task.id}: metadata['aliases'] is {aliases!r}; expected a list of texts")
    return (task.answer, *aliases)


def shown(text: str, limit: int = 120) -> str:
    """A text for a reason: one line, its end cut off if it is long."""
    # Cut before it is split: a reply of megabytes is not walked through for one line of a reason.
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit and len(text) <= 4 * limit else f"{line[: limit - 1]}…"


def written(value: Any, write: Callable[[Any], str] = repr) -> str:
    """A value as text for a reason, whatever it is: a number of thousands of digits, or deep nesting, is only named."""
    try:
        return write(value)
    except (ValueError, RecursionError, TypeError):
        return f"<{type(value).__name__} too large or too deep to be written>"


def json_of(text: str, expect: Literal["object", "any"] = "object") -> Any:
    """The JSON value that a text holds, repaired where that is safe; None without one."""
    try:
        return read_json(text, expect=expect).value
    except ReadingError:
        return None
