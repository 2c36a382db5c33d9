"""Calls and thoughts in a text that was sampled as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from concertino import ToolCall
from concertino.text import ReadingError, TextCall, read_json, read_tool_calls

from .contract import Tools
from .dialects import HarmonyReader
from .vocabulary import without_marks


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


def cut_channels(text: str, tools: Tools) -> SampledText:
    """A text of GPT-OSS by its channels.

    Args:
        text: as it was sampled; marks of channels that somebody only speaks of are cut by `MARK`.
        tools: that were offered.
    """
    reader = HarmonyReader(tools)
    said = reader.feed(text) + reader.finish()
    calls = [replace(call, id=f"call-{number}") for number, call in enumerate(reader.calls, 1)]
    return SampledText(without_marks(said), tuple(calls), without_marks(reader.reasoning))


def cut_calls(text: str) -> SampledText:
    """A text without its calls; a call inside a thought does not count."""
    found = read_tool_calls(text, thoughts=("think",))
    if not found.calls:
        return SampledText(text)
    calls = tuple(_call(call, text, f"call-{number}") for number, call in enumerate(found.calls, 1))
    return SampledText("\n".join(filter(None, map(str.strip, found.outside))), calls)


def _call(call: TextCall, text: str, id: str) -> ToolCall:
    """A call whose arguments are data where all of it is strict JSON, else the text that was written."""
    if call.error and call.arguments == "{}":  # a broken call is not one without arguments
        body = text[call.start : call.end].removeprefix("<tool_call>").removesuffix("</tool_call>")
        return ToolCall(call.name, body.strip(), id)
    try:
        return ToolCall(call.name, call.arguments if call.error else read_json(call.arguments, strict=True).value, id)
    except ReadingError:
        return ToolCall(call.name, call.arguments, id)
