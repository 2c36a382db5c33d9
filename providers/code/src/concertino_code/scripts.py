"""What the tool and the agent both know of scripts: how they are fenced in text, and what their endings are called."""

from __future__ import annotations

import re

from concertino import Status

from .execution import Ending

_FENCED = re.compile(r"\s*```[ \t]*(?:python[0-9.]*|py)?[ \t]*\r?\n(.*?)\r?\n?```\s*", re.DOTALL | re.IGNORECASE)

SCRIPT_CODES: dict[Ending, tuple[Status, str]] = {
    Ending.EXIT: (Status.EXEC_ERR, "script_error"),
    Ending.SIGNAL: (Status.EXEC_ERR, "script_signal"),
    Ending.MEMORY: (Status.EXEC_ERR, "memory_limit"),
    Ending.WALL: (Status.TIMEOUT, "time_limit"),
    Ending.CPU: (Status.TIMEOUT, "cpu_limit"),
}
"""Status and error code of every ending but OK."""


def unfenced(code: str) -> str:
    """The code without a Markdown fence around all of it."""
    fenced = _FENCED.fullmatch(code)
    return fenced[1] if fenced else code
