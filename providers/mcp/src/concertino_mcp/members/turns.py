"""What a model wrote in one turn of an agent: calls, an answer, or neither.

Invariant: a call that cannot be read is a call with an error, which the model is shown; calls inside thoughts do not
count. The arguments are not judged here: the executor does that, by the tool's own schema.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from concertino import Call, Reply
from concertino.text import NAMELESS, ReadingError, cut_blocks, read_json

_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class AgentTurn:
    """A reply, read.

    Attributes:
        calls: in their order, by the names that the model wrote; `?` where there is none.
        answer: the text of the answer block; empty without one.
        text: what stands outside of thoughts, calls and answer.
    """

    calls: tuple[Call, ...]
    answer: str
    text: str


def read_turn(reply: Reply) -> AgentTurn:
    """Read a reply: native calls if the server parsed them, else the text."""
    blocks = cut_blocks(reply.text, ("think", "reasoning", "tool_call"), repeating="tool_call", stray=False)
    if reply.tool_calls:
        calls = tuple(Call(call.name, _arguments(call.arguments)) for call in reply.tool_calls)
    else:
        calls = tuple(_block(reply.text[block.begin : block.stop]) for block in blocks if block.tag == "tool_call")
    rest = "".join(reply.text[block.start : block.end] for block in blocks if not block.tag)
    answer = _ANSWER.search(rest)
    return AgentTurn(calls, answer.group(1).strip() if answer else "", _ANSWER.sub("", rest).strip())


def _block(text: str) -> Call:
    try:
        read = read_json(text)
    except ReadingError as error:
        return Call(NAMELESS, error=("bad_json", str(error)))
    name = read.value.get("name")
    if not isinstance(name, str) or not name:
        return Call(NAMELESS, error=("bad_format", 'a call is {"name": "...", "arguments": {...}}; "name" is missing'))
    return Call(name, _arguments(read.value.get("arguments", {})), repairs=read.repairs)


def _arguments(given: Any) -> dict[str, Any] | str:
    """Data as it is, text as it is; what is neither becomes text that the executor refuses with its position."""
    if isinstance(given, dict):
        return given
    return given if isinstance(given, str) else json.dumps(given)
