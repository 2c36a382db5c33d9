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
from collections.abc import Sequence
from typing import Any, NamedTuple

from concertino.core.format_issue import FormatIssue
from concertino.core.model import Reply
from concertino.core.plan import Call
from concertino.text.json import ReadingError, read_json
from concertino.text.tool_calls import NAMELESS, TextBlock, cut_blocks, name_in, write_tool_call

_ANSWER = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL)
# What a thought must not hold when it is written out: the reader would end it there or see a call.
_TAG = re.compile(r"<(?=/?(?:think|reasoning|tool_call|answer)\b)")
CODES = {
    "no_reasoning": "The text does not begin with `<reasoning>...</reasoning>`.",
    "no_call": "There is no `<tool_call>`.",
    "stray_text": "There is text outside of the reasoning and the calls.",
    "unclosed": "A tag is not closed.",
    "bad_json": "A call is not strict JSON; it may still have been read.",
    "bad_format": "A call has other keys than `name` and `arguments`, or `arguments` is not an object.",
    "too_many_calls": "There are more calls than one round may have.",
}
"""What `check_round` and the reader say of a text, by code."""


class RoundText(NamedTuple):
    """What a round's text says.

    Attributes:
        reasoning: the text before and around the calls.
        calls: in the order of the text; unreadable ones carry an error.
        answer: text of an `<answer>` block outside the reasoning, `None` if there is none.
        plain: the text outside of the reasoning and the calls.
        unclosed: the text ends inside the reasoning, so nothing was said.
        exact: the text has the exact form; `check_round` would find nothing.
    """

    reasoning: str
    calls: list[Call]
    answer: str | None
    unclosed: bool
    exact: bool = False
    plain: str = ""


def read_round(reply: Reply) -> RoundText:
    """Read a reply: native tool calls if the server parsed them, else the text."""
    thoughts: list[str] = []
    calls: list[Call] = []
    rest: list[str] = []
    unclosed = False
    exact = True
    for block in _blocks(reply.text):
        text = reply.text[block.begin : block.stop]
        if not block.tag:
            rest.append(text)
            exact = exact and (not text or text.isspace())
        elif block.tag != "tool_call":
            exact = exact and block.closed and block.tag == "reasoning" and not thoughts and not calls
            thoughts.append(text.strip())
            unclosed = not block.closed
        # A server that parsed the calls itself leaves their text out or repeats it; reading it too would double them.
        elif not reply.tool_calls:
            cut_off = reply.finish_reason == "length" and not block.closed
            call, plain = _from_block(str(len(calls) + 1), text, cut_off)
            exact = exact and block.closed and plain and bool(thoughts)
            calls.append(call)
    visible = "".join(rest)
    if reply.tool_calls:
        calls = [Call(call.name, call.arguments, str(n)) for n, call in enumerate(reply.tool_calls, 1)]
    answer = _ANSWER.search(visible) if "<answer>" in visible else None
    reasoning = "\n".join(filter(None, [reply.reasoning, *thoughts])) or visible.strip()
    # Native calls have no text to judge.
    exact = exact and bool(calls) and not reply.tool_calls
    return RoundText(reasoning, calls, answer.group(1).strip() if answer else None, unclosed, exact, visible.strip())


def read_ahead(text: str, most: int) -> list[Call]:
    """The first calls whose blocks are closed in a text that is still being written, as `read_round` will read them.

    Args:
        most: how many are read. It is asked again and again as the text grows.
    """
    blocks = [block for block in _blocks(text) if block.tag == "tool_call"]
    numbered = enumerate(blocks[:most], 1)
    return [
        _from_block(str(number), text[block.begin : block.stop], False)[0] for number, block in numbered if block.closed
    ]


def _blocks(text: str) -> list[TextBlock]:
    return cut_blocks(text, ("think", "reasoning", "tool_call"), repeating="tool_call", stray=False)


def _from_block(call_id: str, block: str, cut_off: bool) -> tuple[Call, bool]:
    """The call of one block, and whether it has the exact form; `cut_off`: the length limit ended it."""
    try:
        reading = read_json(block)
    except ReadingError as error:
        text = "the text ended (length limit) inside this call; write shorter calls" if cut_off else str(error)
        # The name is fished out of the broken JSON, so that the observation says which call failed.
        return Call(name_in(block), id=call_id, error=("bad_json", text)), False
    data = reading.value
    name = data.get("name")
    if not isinstance(name, str) or not name:
        text = 'a call is {"name": "...", "arguments": {...}}; "name" is missing'
        return Call(NAMELESS, id=call_id, error=("bad_format", text)), False
    arguments = data.get("arguments", {})
    if not isinstance(arguments, (dict, str)):
        kind = type(arguments).__name__
        text = f'"arguments" of {name!r} must be an object; got {kind}'
        return Call(name, id=call_id, error=("bad_format", text)), False
    plain = not reading.repairs and len(data) == 2 and type(arguments) is dict and "arguments" in data
    return Call(name, arguments, call_id, repairs=reading.repairs, guarded=True), plain


def write_call(name: str, arguments: Any) -> str:
    """A call as the format wants it."""
    return write_tool_call(name, json.dumps(arguments, ensure_ascii=False), gap="")


def write_round(reasoning: str, calls: Sequence[tuple[str, Any]]) -> str:
    """A whole round; `is_strict` holds for it. Tags in the reasoning, which would end it, lose their bracket."""
    blocks = [write_call(name, arguments) for name, arguments in calls]
    return "\n".join([f"<reasoning>{_TAG.sub('‹', reasoning)}</reasoning>", *blocks])


def is_strict(text: str) -> bool:
    """Whether a text has the exact form of a round (the paper's format check)."""
    return not check_round(text)


def write_ending(thought: str, answer: str) -> str:
    """A text that ends the work with its answer."""
    return "\n".join([f"<reasoning>{_TAG.sub('‹', thought)}</reasoning>", f"<answer>{answer}</answer>"])


def check_round(text: str) -> tuple[FormatIssue, ...]:
    """What keeps a text from the exact form: reasoning, then one or more calls in strict JSON, and nothing else.

    The format term of ParaManager's reward (Eq. 10) is 1 for a text without issues.
    """
    issues: list[FormatIssue] = []
    blocks = [block for block in _blocks(text) if block.tag or text[block.begin : block.stop].strip()]
    if not blocks or blocks[0].tag != "reasoning":
        issues.append(FormatIssue("no_reasoning", "begin with <reasoning>...</reasoning>", 0, min(1, len(text))))
    for part in blocks[1:] if blocks and blocks[0].tag == "reasoning" else blocks:
        if part.tag != "tool_call":
            what = f"a second <{part.tag}>" if part.tag else "text outside of the blocks"
            inside = "" if part.tag else text[part.start : part.end]
            start = part.start + len(inside) - len(inside.lstrip())
            issues.append(
                FormatIssue("stray_text", f"{what}; after the reasoning there are calls only", start, part.end)
            )
    issues += [_unclosed(part) for part in blocks if part.tag and not part.closed]
    calls = [part for part in blocks if part.tag == "tool_call"]
    if not calls:
        what = 'there is no call; write <tool_call>{"name": "...", "arguments": {...}}</tool_call>'
        issues.append(FormatIssue("no_call", what, len(text), len(text)))
    issues += [issue for part in calls if part.closed and (issue := _check_call(text, part)) is not None]
    return tuple(sorted(issues, key=lambda issue: issue.start))


def _unclosed(part: TextBlock) -> FormatIssue:
    return FormatIssue("unclosed", f"<{part.tag}> is not closed; write </{part.tag}>", part.start, part.end)


def _check_call(text: str, part: TextBlock) -> FormatIssue | None:
    """What is wrong with a call by the letter, although it may have been understood."""
    try:
        data = read_json(text[part.begin : part.stop], strict=True).value
    except ReadingError as error:
        return FormatIssue("bad_json", f"{error}", part.start, part.end)
    if set(data) != {"name", "arguments"} or not isinstance(data["name"], str):
        message = 'a call is {"name": "...", "arguments": {...}}, with these two keys alone'
        return FormatIssue("bad_format", message, part.start, part.end)
    if not isinstance(data["arguments"], dict):
        return FormatIssue("bad_format", '"arguments" must be an object', part.start, part.end)
    return None
