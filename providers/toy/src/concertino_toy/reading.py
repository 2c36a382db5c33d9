"""What the scripted orchestrators read and write in a conversation: headings, tool calls, short observations, boxes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from concertino.text import cut_blocks

PROBLEM_HEADING = re.compile(r"\bProblem\s+(\d+)\s*:")
"""The heading of a problem in a question of several."""
_LINE = re.compile(r"^(\S+) (OK|PARSE_ERR|EXEC_ERR|TIMEOUT)(?: (.*))?$", re.MULTILINE)


class ObservedLine(NamedTuple):
    """One observation in the short form of brief prompts: label of the call, status, and the text behind them."""

    label: str
    status: str
    text: str


def call_blocks(text: str) -> list[str]:
    """The bodies of all closed tool calls, in order."""
    blocks = cut_blocks(text, ("tool_call",), repeating="tool_call", stray=False)
    return [text[block.begin : block.stop].strip() for block in blocks if block.tag and block.closed]


def observed_lines(text: str) -> list[ObservedLine]:
    """The observations of a message, in order."""
    return [ObservedLine(*found) for found in _LINE.findall(text)]


def write_boxes(values: Iterable[object]) -> list[str]:
    """Each value in a box."""
    return [f"\\boxed{{{value}}}" for value in values]
