"""What a model wrote in one turn of an agent: calls, an answer, or neither.

Invariant: a call that cannot be read is a call with a fault, so the model hears of it; thoughts are no calls.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from concertino import Reply, ToolCall
from concertino.reading import ReadingError, read_json

_THOUGHT = re.compile(r"<(think|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Wanted:
    """A call that a model wants.

    Attributes:
        name: of the tool; `?` where it cannot be read.
        arguments: the object; empty where there is a fault.
        fault: why it cannot be made; empty if it can.
    """

    name: str
    arguments: dict[str, Any]
    fault: str = ""

    def written(self) -> str:
        """As the model was asked to write it."""
        data = json.dumps({"name": self.name, "arguments": self.arguments}, ensure_ascii=False)
        return f"<tool_call>\n{data}\n</tool_call>"


@dataclass(frozen=True)
class Turn:
    """A reply, read.

    Attributes:
        calls: in their order.
        answer: the text of the answer block; empty without one.
        text: what stands outside of thoughts, calls and answer.
    """

    calls: tuple[Wanted, ...]
    answer: str
    text: str


def read_turn(reply: Reply) -> Turn:
    """Read a reply: native calls if the server parsed them, else the text."""
    visible = _THOUGHT.sub("", reply.text)
    if reply.tool_calls:
        calls = tuple(_native(call) for call in reply.tool_calls)
    else:
        calls = tuple(_block(match.group(1)) for match in _CALL.finditer(visible))
    rest = _CALL.sub("", visible)
    answer = _ANSWER.search(rest)
    return Turn(calls, answer.group(1).strip() if answer else "", _ANSWER.sub("", rest).strip())


def _block(text: str) -> Wanted:
    try:
        data = read_json(text).value
    except ReadingError as error:
        return Wanted("?", {}, str(error))
    name = data.get("name")
    if not isinstance(name, str) or not name:
        return Wanted("?", {}, 'a call is {"name": "...", "arguments": {...}}; "name" is missing')
    return _with_arguments(name, data.get("arguments", {}))


def _native(call: ToolCall) -> Wanted:
    return _with_arguments(call.name, call.arguments)


def _with_arguments(name: str, arguments: Any) -> Wanted:
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments or "{}").value
        except ReadingError as error:
            return Wanted(name, {}, str(error))
    if not isinstance(arguments, dict):
        return Wanted(name, {}, f'"arguments" must be an object; got {type(arguments).__name__}')
    return Wanted(name, arguments)
