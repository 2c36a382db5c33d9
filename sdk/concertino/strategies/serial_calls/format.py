"""The text of one serial turn, as Hermes and Qwen models write it: a thought, then one call, or a message instead.

    <think> … </think>
    <tool_call>
    {"name": "search", "arguments": {"model": "search-1"}}
    </tool_call>

A turn holds one call. Further calls are read too, and observed as errors. Apart from
calls, a turn may hold a `<message>` to the user (the customer-service tasks of ToolOrchestra) or an `<answer>`.

The reader takes any text, in time linear in its length, and never raises. A lenient
reader repairs text with one plain reading and reports that; a strict one refuses it, as a format reward does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from concertino.core.errors import UsageError
from concertino.core.format_issue import FormatIssue
from concertino.core.model import Reply
from concertino.core.plan import Call
from concertino.schema import near_names
from concertino.text.json import ReadingError, read_json
from concertino.text.tool_calls import NAMELESS, TextBlock, cut_blocks, name_in, write_tool_call

CODES: dict[str, str] = {
    "no_call": "The text has no call, no message and no answer.",
    "unclosed_think": "The text ends inside `<think>`.",
    "unclosed_call": "`</tool_call>` is missing; lenient readers read up to the end of the JSON.",
    "unclosed_block": "`</message>` or `</answer>` is missing; lenient readers take the rest of the text.",
    "cut_off": "The length limit ended the text inside a call.",
    "stray_tag": "A closing tag closes nothing; lenient readers leave it out.",
    "bad_json": "A call is not a JSON object, or has several readings.",
    "repaired_json": "A call is not strict JSON, but has one plain reading; lenient readers take it.",
    "no_name": "A call has no `name`.",
    "no_arguments": "A call has no `arguments`; lenient readers take none.",
    "bad_arguments": "The `arguments` of a call are not an object.",
    "extra_keys": "A call has other keys than `name` and `arguments`; lenient readers leave them out.",
    "unknown_tool": "A call names a tool that is not offered.",
    "bad_choice": "The description of an argument lists aliases, and its value is a different one.",
    "several_calls": "There are several calls; only the first one runs.",
    "too_many_calls": "There are more than 16 calls; the rest is not read.",
    "message_and_call": "There are a message and a call; lenient readers take the call.",
}
"""Every `FormatIssue.code` of this reader."""

TAGS = ("think", "tool_call", "message", "answer")
LIMIT = 16
"""Calls of one text that are read at all."""
# A name goes into messages, traces and the search for near names; a whole text in its place must not.
_LONGEST_NAME = 128
_OF_THE_TEXT = ("stray_tag", "unclosed_block", "message_and_call")
"""Issues of the text around the calls, for which a strict reader refuses the calls too."""

_OBSERVED = {"unknown_tool": "unknown_name", "bad_choice": "invalid_arguments", "bad_json": "bad_json"}
"""Codes of the observation by the code of the issue; `bad_format` for all others."""


@dataclass(frozen=True, slots=True)
class SerialTurn:
    """What a turn's text says.

    Attributes:
        calls: in the order of the text; unreadable ones carry an error.
        thought: what stands in `<think>`, or around the rest.
        message: text of a `<message>`, `None` without one.
        answer: text of an `<answer>`, `None` without one.
        issues: what is wrong with the text.
    """

    calls: tuple[Call, ...] = ()
    thought: str = ""
    message: str | None = None
    answer: str | None = None
    issues: tuple[FormatIssue, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing is wrong beyond what was repaired."""
        return all(issue.repaired for issue in self.issues)


@dataclass(slots=True)
class _TurnDraft:
    """The turn under construction."""

    text: str
    strict: bool
    calls: list[Call] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    issues: list[FormatIssue] = field(default_factory=list)

    def note(self, code: str, message: str, start: int, end: int, repaired: bool = False) -> FormatIssue:
        issue = FormatIssue(code, message, start, end, repaired and not self.strict)
        self.issues.append(issue)
        return issue

    def add(self, call: Call, start: int, end: int, *issues: FormatIssue) -> None:
        """A call with its issues; the first one that was not repaired is its error."""
        wrong = next((issue for issue in issues if not issue.repaired), None)
        self.calls.append(call if wrong is None else _refused(call, wrong))
        self.places.append((start, end))


def _refused(call: Call, issue: FormatIssue) -> Call:
    return replace(call, error=(_OBSERVED.get(issue.code, "bad_format"), issue.message))


def read_turn(
    reply: Reply,
    *,
    tools: Collection[str] = (),
    choices: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    strict: bool = False,
) -> SerialTurn:
    """Read a reply: native tool calls if the server parsed them, else the text.

    Args:
        tools: names that are offered; without any, names are not checked here.
        choices: aliases by tool and argument that no schema checks (`choices_by_tool`).
        strict: refuse what lenient reading repairs.
    """
    text = reply.text
    blocks = cut_blocks(text, TAGS, repeating="tool_call")
    turn = _TurnDraft(text, strict)
    _note_tags(turn, blocks)
    if reply.tool_calls:
        for call in reply.tool_calls[:LIMIT]:
            turn.add(
                Call(call.name[:_LONGEST_NAME] or NAMELESS, call.arguments, str(len(turn.calls) + 1)), 0, len(text)
            )
        found = len(reply.tool_calls)
    else:
        written = [block for block in blocks if block.tag == "tool_call"]
        for block in written[:LIMIT]:
            _read_block(turn, block, reply.finish_reason == "length")
        found = len(written)
    if found > LIMIT:
        message = f"{found} calls in one text; at most {LIMIT} are read; write one"
        turn.note("too_many_calls", message, turn.places[-1][1], len(text))
    _check_names(turn, tools, choices or {})
    return _finished(turn, blocks)


def _note_tags(turn: _TurnDraft, blocks: Sequence[TextBlock]) -> None:
    for block in blocks:
        if block.tag.startswith("/"):
            name = block.tag[1:]
            turn.note("stray_tag", f"</{name}> closes nothing; write <{name}> first", block.start, block.end, True)
        elif block.tag in ("message", "answer") and not block.closed:
            message = f"</{block.tag}> is missing; close the {block.tag}"
            turn.note("unclosed_block", message, block.start, block.end, True)
        elif block.tag == "think" and not block.closed:
            message = "the text ends inside <think>; think more briefly, write </think>, then one call"
            turn.note("unclosed_think", message, block.start, block.end)


def _read_block(turn: _TurnDraft, block: TextBlock, out_of_tokens: bool) -> None:
    """One `<tool_call>` block."""
    call_id = str(len(turn.calls) + 1)
    place = block.start, block.end
    inside = turn.text[block.begin : block.stop]
    # Only the last block can have been cut off; an earlier unclosed one is the model's own slip.
    if not block.closed and out_of_tokens and block.end == len(turn.text):
        message = "the text ended (length limit) inside this call; think more briefly, write a shorter call"
        turn.add(Call(name_in(inside), id=call_id), *place, turn.note("cut_off", message, *place))
        return
    issues: list[FormatIssue] = []
    if not block.closed:
        issues.append(turn.note("unclosed_call", "</tool_call> is missing; close the call", *place, True))
    try:
        reading = read_json(inside)
    except ReadingError as error:
        at = min(block.begin + error.position, block.stop)
        turn.add(Call(name_in(inside), id=call_id), *place, *issues, turn.note("bad_json", str(error), at, block.stop))
        return
    if reading.repairs:
        message = f"not strict JSON; it was read after {', '.join(reading.repairs)}; write strict JSON"
        issues.append(turn.note("repaired_json", message, block.begin, block.stop, True))
    issues += _check_keys(turn, reading.value, block)
    name, arguments = reading.value.get("name"), reading.value.get("arguments", {})
    call = Call(
        name[:_LONGEST_NAME] if isinstance(name, str) and name else NAMELESS,
        arguments if isinstance(arguments, dict) else {},
        call_id,
        repairs=reading.repairs,
        guarded=True,
    )
    turn.add(call, *place, *issues)


def _check_keys(turn: _TurnDraft, data: Mapping[str, Any], block: TextBlock) -> list[FormatIssue]:
    """What is wrong with the keys of a call."""
    place = block.begin, block.stop
    issues: list[FormatIssue] = []
    name = data.get("name")
    if not isinstance(name, str) or not name:
        # `arguments` is a right key, so it cannot be the misspelt `name`.
        near = near_names("name", [key[:_LONGEST_NAME] for key in data if key != "arguments"], limit=1)
        hint = f"; {near[0][:40]!r} is not it" if near else ""
        message = f'a call is {{"name": "...", "arguments": {{...}}}}; "name" is missing{hint}'
        issues.append(turn.note("no_name", message, *place))
    if "arguments" not in data:
        message = '"arguments" is missing; write {} if there are none'
        issues.append(turn.note("no_arguments", message, *place, True))
    elif not isinstance(data["arguments"], dict):
        message = f'"arguments" must be an object; got {type(data["arguments"]).__name__}; write {{"name": value}}'
        issues.append(turn.note("bad_arguments", message, *place))
    if extra := [key for key in data if key not in ("name", "arguments")]:
        message = f"a call has only name and arguments; leave out {', '.join(repr(key[:40]) for key in extra[:4])}"
        issues.append(turn.note("extra_keys", message, *place, True))
    return issues


def _check_names(turn: _TurnDraft, tools: Collection[str], choices: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    for index, (call, place) in enumerate(zip(turn.calls, turn.places, strict=True)):
        if call.error is not None:
            continue
        if tools and call.name not in tools:
            near = near_names(call.name, tools, limit=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(tools)[:8])}"
            issue = turn.note("unknown_tool", f"there is no tool {call.name[:60]!r}; {hint}", *place)
            turn.calls[index] = _refused(call, issue)
        elif call.name in choices and (message := _unlisted(call, choices[call.name])):
            turn.calls[index] = _refused(call, turn.note("bad_choice", message, *place))


def _unlisted(call: Call, offered: Mapping[str, Sequence[str]]) -> str:
    """What is wrong with an argument that takes an alias, `""` if nothing; other arguments are the executor's."""
    arguments = arguments_of(call)
    for name, aliases in offered.items():
        value = arguments.get(name)
        if value is None or value in aliases:
            continue
        near = near_names(value, aliases, limit=1) if isinstance(value, str) else []
        hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(aliases[:12])}"
        return f"{name}={str(value)[:60]!r} of {call.name[:60]} is not one of its choices; {hint}"
    return ""


def arguments_of(call: Call) -> Mapping[str, Any]:
    """The arguments of a call as data; none where their text is unreadable, which the executor reports."""
    arguments: Any = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments).value
        except ReadingError:
            return {}
    return arguments if isinstance(arguments, Mapping) else {}


def _finished(turn: _TurnDraft, blocks: Sequence[TextBlock]) -> SerialTurn:
    """The turn as a whole."""
    text = turn.text
    thoughts = [text[b.begin : b.stop].strip() for b in blocks if b.tag == "think"]
    around = "".join(text[b.begin : b.stop] for b in blocks if not b.tag).strip()
    message = next((text[b.begin : b.stop].strip() for b in blocks if b.tag == "message"), None)
    # The last answer: a model may correct itself within one text.
    answer = next((text[b.begin : b.stop].strip() for b in reversed(blocks) if b.tag == "answer"), None)
    if len(turn.calls) > 1:
        message_ = f"{len(turn.calls)} calls in one turn; only the first runs; repeat the others one by one"
        turn.note("several_calls", message_, turn.places[1][0], turn.places[-1][1])
    if turn.calls and message is not None:
        place = next(b for b in blocks if b.tag == "message")
        turn.note("message_and_call", "write a message or a call, not both", place.start, place.end, True)
        message = None
    # Its own issue tells more than `no_call` would.
    unclosed = any(issue.code == "unclosed_think" for issue in turn.issues)
    around_calls = next((issue for issue in turn.issues if issue.code in _OF_THE_TEXT and not issue.repaired), None)
    if around_calls is not None:
        turn.calls = [call if call.error else _refused(call, around_calls) for call in turn.calls]
    if not turn.calls and message is None and answer is None and not unclosed:
        expected = 'write <tool_call>{"name": "...", "arguments": {...}}</tool_call>'
        turn.note("no_call", f"the text holds no call; {expected}", 0, len(text))
    thought = "\n".join(filter(None, thoughts)) or around
    return SerialTurn(tuple(turn.calls), thought, message, answer, tuple(turn.issues))


def write_turn(thought: str, name: str, arguments: Mapping[str, Any]) -> str:
    """A turn with one call, as Qwen's chat template writes it; the strict reader accepts it.

    Raises:
        UsageError: a tag in the thought, which would end it.
    """
    return f"{_written_thought(thought)}{write_tool_call(name, dict(arguments))}"


def write_message(thought: str, message: str) -> str:
    """A turn with a message to the user.

    Raises:
        UsageError: a tag in the thought or the message.
    """
    if "</message>" in message:
        raise UsageError("the message holds </message>, which would end it; leave it out")
    return f"{_written_thought(thought)}<message>{message}</message>"


def _written_thought(thought: str) -> str:
    if "</think>" in thought:
        raise UsageError("the thought holds </think>, which would end it; leave it out")
    return f"<think>\n{thought}\n</think>\n" if thought else ""
