"""Native tool calls and thoughts in a text: `<tool_call>{"name": …, "arguments": …}</tool_call>`, `<think>…</think>`.

A call that cannot be read is kept as it was written, so that whoever reads its arguments says what is wrong with them;
without a readable name it is called `?`.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from concertino import ToolCall
from concertino.text.json import ReadingError, read_json

NAMELESS = "?"
_BLOCK = re.compile(
    r"<think>.*?(?:</think>|\Z)|\s*<tool_call>(?P<call>.*?)(?:</tool_call>|(?=<tool_call>)|\Z)\s*", re.DOTALL
)
_NAME = re.compile(r'"name"\s*:\s*("(?:[^"\\]|\\.)*")')
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s*:\s*')


class SampledText(NamedTuple):
    """What a text says: visible text, calls in order, thoughts."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    thoughts: str = ""


def cut_thoughts(text: str, begun: bool) -> SampledText:
    """A text without what was thought in front of it.

    Args:
        text: as it was sampled.
        begun: the thought was open before its first token.
    """
    head = text.lstrip()
    if not begun and not head.startswith("<think>"):
        return SampledText(text)
    thought, _, rest = head.removeprefix("<think>").partition("</think>")
    return SampledText(rest.lstrip(), (), thought.strip())


def cut_calls(text: str) -> SampledText:
    """A text without its calls; a call inside a thought does not count."""
    calls: list[ToolCall] = []
    parts: list[str] = []
    done = 0
    for block in _BLOCK.finditer(text):
        body = block["call"]
        if body is None or not (body.lstrip().startswith("{") or text[: block.end()].rstrip().endswith("</tool_call>")):
            continue  # a thought, or a text that only speaks of the mark
        parts.append(text[done : block.start()])
        done = block.end()
        calls.append(_read(body.strip(), f"call-{len(calls) + 1}"))
    if not calls:
        return SampledText(text)
    return SampledText("\n".join(filter(None, (part.strip() for part in (*parts, text[done:])))), tuple(calls))


def _read(body: str, id: str) -> ToolCall:
    try:
        data = read_json(body, strict=True).value
    except ReadingError:
        return _broken(body, id)
    if not isinstance(data.get("name"), str):
        return ToolCall(NAMELESS, body, id)
    arguments = data["arguments"] if "arguments" in data else data.get("parameters")
    if arguments in ("", None):
        arguments = {}
    return ToolCall(data["name"], arguments if isinstance(arguments, dict) else json.dumps(arguments), id)


def _broken(body: str, id: str) -> ToolCall:
    """A call that is not valid JSON: its name if that can be read, and its arguments as they were written."""
    name, found = _NAME.search(body), _ARGUMENTS.search(body)
    if name is None:
        return ToolCall(NAMELESS, body, id)
    rest = body[found.end() :].strip() if found else ""
    if rest.endswith("}") and rest.count("}") > rest.count("{"):
        rest = rest[:-1].rstrip()  # the brace of the object around it
    try:
        readable = str(json.loads(name[1]))
    except ValueError:
        readable = name[1].strip('"')
    return ToolCall(readable, rest or body, id)
