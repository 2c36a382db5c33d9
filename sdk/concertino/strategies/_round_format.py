"""The text of one round in ParaManager's format (its section 3; also how Hermes and Qwen models call tools).

    <reasoning> … </reasoning>
    <tool_call>{"name": "search", "arguments": {"query": "…"}}</tool_call>
    <tool_call>{"name": "solve", "arguments": {"subtask": "…"}}</tool_call>

The reader never drops a call: a block that cannot be read becomes a call with an error, which is observed as its
PARSE_ERR while its siblings run. What stands inside `<think>` or `<reasoning>` is not a call. The strict check is the
one that a format reward uses (ParaManager Eq. 10).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from concertino._models import Reply
from concertino._plan import Call
from concertino.reading import ReadingError, read_json

_OPENING = re.compile(r"<(think|reasoning|tool_call)>")
_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)
_NAME = re.compile(r'"name"\s*:\s*"([^"\\]{1,64})"')
_STRICT = re.compile(
    r"\s*<reasoning>.*?</reasoning>\s*(?:<tool_call>[^<]*(?:<(?!/?tool_call>)[^<]*)*</tool_call>\s*)+\Z",
    re.DOTALL,
)


class RoundText(NamedTuple):
    """What a round's text says.

    Attributes:
        reasoning: the text before and around the calls.
        calls: in the order of the text; unreadable ones carry an error.
        answer: text of an `<answer>` block outside the reasoning, `None` if there is none.
        unclosed: the text ends inside the reasoning, so nothing was said.
    """

    reasoning: str
    calls: list[Call]
    answer: str | None
    unclosed: bool


def read_round(reply: Reply) -> RoundText:
    """Read a reply: native tool calls if the server parsed them, else the text."""
    thoughts: list[str] = []
    calls: list[Call] = []
    rest: list[str] = []
    unclosed = False
    for tag, text, closed in _parts(reply.text):
        if not tag:
            rest.append(text)
        elif tag != "tool_call":
            thoughts.append(text.strip())
            unclosed = not closed
        elif not reply.tool_calls:
            cut_off = reply.finish_reason == "length" and not closed
            calls.append(_from_block(str(len(calls) + 1), text, cut_off))
    visible = "".join(rest)
    if reply.tool_calls:
        calls = [Call(call.name, call.arguments, str(n)) for n, call in enumerate(reply.tool_calls, 1)]
    answer = _ANSWER.search(visible) if "<answer>" in visible else None
    reasoning = "\n".join(filter(None, [reply.reasoning, *thoughts])) or visible.strip()
    return RoundText(reasoning, calls, answer.group(1).strip() if answer else None, unclosed)


def read_ahead(text: str) -> list[Call]:
    """The calls whose blocks are closed in a text that is still being written, as `read_round` will read them."""
    blocks = [(block, closed) for tag, block, closed in _parts(text) if tag == "tool_call"]
    return [_from_block(str(number), block, False) for number, (block, closed) in enumerate(blocks, 1) if closed]


def _parts(text: str) -> Iterator[tuple[str, str, bool]]:
    """The text in order, as (tag, what stands inside, whether the tag is closed); the tag is `""` between blocks.

    A block ends at its closing tag; a call also where the next one begins, and everything at the end of the text.
    """
    position = 0
    while opening := _OPENING.search(text, position):
        if opening.start() > position:
            yield "", text[position : opening.start()], True
        tag, begin = opening.group(1), opening.end()
        closing = f"</{tag}>"
        end = text.find(closing, begin)
        stop = end if end >= 0 else len(text)
        following = text.find("<tool_call>", begin, stop) if tag == "tool_call" else -1
        if following >= 0:
            end, stop = -1, following
        yield tag, text[begin:stop], end >= 0
        position = stop + len(closing) if end >= 0 else stop
    if position < len(text):
        yield "", text[position:], True


def _from_block(call_id: str, block: str, cut_off: bool) -> Call:
    """The call of one block; `cut_off`: the length limit ended it."""
    try:
        reading = read_json(block)
    except ReadingError as error:
        named = _NAME.search(block)
        text = "the text ended (length limit) inside this call; write shorter calls" if cut_off else str(error)
        return Call(named.group(1) if named else "?", id=call_id, error=("bad_json", text))
    data = reading.value
    name = data.get("name")
    if not isinstance(name, str) or not name:
        text = 'a call is {"name": "...", "arguments": {...}}; "name" is missing'
        return Call("?", id=call_id, error=("bad_format", text))
    arguments = data.get("arguments", {})
    if not isinstance(arguments, (dict, str)):
        kind = type(arguments).__name__
        return Call(name, id=call_id, error=("bad_format", f'"arguments" of {name!r} must be an object; got {kind}'))
    return Call(name, arguments, call_id, repairs=reading.repairs, guarded=True)


def write_call(name: str, arguments: Any) -> str:
    """A call as the format wants it."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}</tool_call>"


def write_round(reasoning: str, calls: Sequence[tuple[str, Any]]) -> str:
    """A whole round; `is_strict` holds for it."""
    return "\n".join(
        [f"<reasoning>{reasoning}</reasoning>", *(write_call(name, arguments) for name, arguments in calls)]
    )


def is_strict(text: str) -> bool:
    """ParaManager's format check of one round: reasoning, then one or more calls in strict JSON, and nothing else."""
    if not _STRICT.match(text):
        return False
    for tag, block, _ in _parts(text):
        if tag != "tool_call":
            continue
        try:
            data = read_json(block, strict=True).value
        except ReadingError:
            return False
        if set(data) != {"name", "arguments"} or not isinstance(data["name"], str):
            return False
        if not isinstance(data["arguments"], dict):
            return False
    return True
