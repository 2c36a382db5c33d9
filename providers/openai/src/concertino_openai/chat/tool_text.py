"""Calls that a server left in the text, in the format of Hermes and Qwen: `<tool_call>{"name": ..., "arguments": ...}`.

The arguments are kept as they were written, not parsed and serialised again, so that validation sees what the model
wrote: a duplicate key, a number too large, a list. A block that cannot be parsed is still a call, with its
name if there is one and with the raw text, because the model has to learn what was wrong with it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from concertino import ToolCall

NO_NAME = "?"
"""The name of a call whose name cannot be read."""

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_BLANK = " \t\n\r"
_NAME = re.compile(r"""["']name["']\s*:\s*["']([^"'\s]+)["']""")
_ARGUMENTS = re.compile(r"""["'](?:arguments|parameters)["']\s*:\s*""")
_UNREADABLE = re.compile(r"Content: (.+?)\nError: ", re.DOTALL)
_ABOUT_CALLS = re.compile(r"could not parse|JSONDecodeError|^'(?:arguments|name|function)'$", re.IGNORECASE)
_scan = json.JSONDecoder().raw_decode


def read_calls(text: str) -> tuple[list[ToolCall], str]:
    """The calls of a text, and the text around them.

    Args:
        text: begins at the first `<tool_call>`, or with blank space before it.
    """
    calls: list[ToolCall] = []
    around: list[str] = []
    for is_call, part in _parts(text):
        if is_call:
            calls.append(read_call(part))
        else:
            around.append(part)
    rest = "".join(around)
    return calls, rest.strip() if calls else rest


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """The text in order, as (is it inside a block, text). A block also ends where the next one begins."""
    position = 0
    while (start := text.find(_OPEN, position)) >= 0:
        begin = start + len(_OPEN)
        following = text.find(_OPEN, begin)
        limit = len(text) if following < 0 else following
        end = text.find(_CLOSE, begin, limit)
        if end < 0 and not text[begin:limit].lstrip().startswith("{"):
            yield False, text[position:limit]  # the text only mentions the tag
            position = limit
            continue
        yield False, text[position:start]
        yield True, text[begin : limit if end < 0 else end]
        position = limit if end < 0 else end + len(_CLOSE)
    yield False, text[position:]


def read_call(block: str) -> ToolCall:
    """The call inside a block; `NO_NAME` and the whole text if nothing of it can be read."""
    block = block.strip()
    fields = _fields(block)
    name = _string(fields.get("name", ""))
    arguments = fields.get("arguments", fields.get("parameters"))
    if not name and (found := _NAME.search(block)):
        name = found.group(1)
    if not name:
        return ToolCall(NO_NAME, block)
    if arguments is None and (place := _ARGUMENTS.search(block)):
        arguments = _without_last_brace(block[place.end() :])
    if not arguments and not block.endswith("}"):
        return ToolCall(name, block)  # cut off before its arguments: to run it without any would be a guess
    return ToolCall(name, arguments_text(arguments))


def write_call(call: ToolCall) -> str:
    """A call as such a text; good enough to count its tokens."""
    return f'<tool_call>{{"name": "{call.name}", "arguments": {call.arguments}}}</tool_call>'


def arguments_text(given: Any) -> str:
    """The arguments of a call as text, whatever a server made of them; none are an empty object."""
    text = given.strip() if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return "{}" if text in ("", "null", '""') else text


def call_in_error(text: str) -> ToolCall | None:
    """The call that a server could not read and answered with an error; None if the error is about something else."""
    if not _ABOUT_CALLS.search(text):
        return None
    shown = _UNREADABLE.search(text)
    if shown:
        try:
            return read_call(str(ast.literal_eval(shown.group(1))))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
    return ToolCall(NO_NAME, text.strip())


def _string(raw: str) -> str:
    """The value of a raw JSON string, `""` for anything else."""
    try:
        value = json.loads(raw)
    except ValueError:
        return ""
    return value.strip() if isinstance(value, str) else ""


def _fields(block: str) -> dict[str, str]:
    """The raw texts of the fields of a JSON object, up to the first that is broken; that one takes the rest."""
    fields: dict[str, str] = {}
    if not block.startswith("{"):
        return fields
    position = _skip(block, 1)
    try:
        while block[position] == '"':
            key, position = _scan(block, position)
            position = _skip(block, position)
            if block[position] != ":":
                break
            begin = _skip(block, position + 1)
            try:
                _, position = _scan(block, begin)
            except (ValueError, RecursionError):
                fields.setdefault(key, _without_last_brace(block[begin:]))
                break
            fields.setdefault(key, block[begin:position])
            position = _skip(block, position)
            if block[position] != ",":
                break
            position = _skip(block, position + 1)
    except (ValueError, IndexError):
        pass
    return fields


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANK:
        position += 1
    return position


def _without_last_brace(text: str) -> str:
    """Without the brace that closed the object around it."""
    text = text.strip()
    return text[:-1].rstrip() if text.endswith("}") and text.count("}") > text.count("{") else text
