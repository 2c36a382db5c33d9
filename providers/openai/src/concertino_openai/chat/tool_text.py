"""Calls that a server left in the text, in the format of Hermes and Qwen, or quoted in an error message.

The arguments are kept as they were written, so that validation sees what the model wrote. A block that cannot be
parsed is still a call, because the model has to learn what was wrong with it.
"""

from __future__ import annotations

import ast
import re

from concertino import ToolCall
from concertino.text import NAMELESS, read_tool_call, read_tool_calls

_UNREADABLE = re.compile(r"Content: (.+?)\nError: ", re.DOTALL)
# The quoted words are a KeyError's whole text: a call that lacks this key.
_ABOUT_CALLS = re.compile(r"could not parse|JSONDecodeError|^'(?:arguments|name|function)'$", re.IGNORECASE)


def read_calls(text: str) -> tuple[list[ToolCall], str]:
    """The calls of a text, and the text around them.

    Args:
        text: begins at the first `<tool_call>`, or with blank space before it.
    """
    found = read_tool_calls(text)
    rest = "".join(found.outside)
    return [ToolCall(call.name, call.arguments) for call in found.calls], rest.strip() if found.calls else rest


def call_in_error(text: str) -> ToolCall | None:
    """The call that a server could not read and answered with an error; None if the error is about something else."""
    if not _ABOUT_CALLS.search(text):
        return None
    shown = _UNREADABLE.search(text)
    if shown:
        try:
            # transformers serve quotes the call as a Python literal.
            call = read_tool_call(str(ast.literal_eval(shown.group(1))))
            return ToolCall(call.name, call.arguments)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
    return ToolCall(NAMELESS, text.strip())
