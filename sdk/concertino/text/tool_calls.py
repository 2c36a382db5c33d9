"""Tool calls in the text of a model: one reader for the dialects of models, and one writer.

    found = read_tool_calls('Let me see. <tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>')
    found.calls[0].name, found.calls[0].arguments  # "add", '{"a": 2}'

Any text is read, in time linear in its length, and none raises. A broken call is still a call: it keeps what can be
read of it and says in `error` what is wrong, so that the model can be told. Arguments are kept as they were written,
neither parsed nor serialised again: validation has to see a duplicate key or a number that is too large.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

NAMELESS = "?"
"""The name of a call whose name cannot be read."""

Tools = Sequence[Mapping[str, Any]]
"""Function objects that were offered. Qwen Coder writes values without quotes: their types say how to read them."""

# -- blocks ------------------------------------------------------------------------------------------------------------


class TextBlock(NamedTuple):
    """A piece of a text; `text[begin:stop]` is what stands inside it.

    Attributes:
        tag: its name; `""` for text outside of all blocks, `/name` for a closing tag that nothing opened.
        start: where it begins, its opening tag included.
        begin: where its inside begins.
        stop: where its inside ends.
        end: where it ends, its closing tag included.
        closed: its closing tag is there.
    """

    tag: str
    start: int
    begin: int
    stop: int
    end: int
    closed: bool = True


def cut_blocks(text: str, tags: Sequence[str], *, repeating: str = "", stray: bool = True) -> list[TextBlock]:
    """Cut a text at its tags: `<think>…</think>`, `<tool_call>…</tool_call>` and whatever else a format has.

    The blocks follow each other without a gap. Inside a block, the tags of others are text.

    Args:
        tags: names of the tags.
        repeating: a tag of which a new one ends the last, if that was not closed.
        stray: give a closing tag that nothing opened as a block of its own; else it is text.
    """
    blocks: list[TextBlock] = []
    opened: tuple[str, int, int] | None = None
    position = 0
    for mark in _tags(tuple(tags)).finditer(text):
        # Interned, because the blocks of all replies of a run are kept.
        name, closing, (start, end) = sys.intern(mark[2]), bool(mark[1]), mark.span()
        if opened is not None:
            tag, opened_at, begin = opened
            if closing and name == tag:
                blocks.append(TextBlock(tag, opened_at, begin, start, end))
                opened, position = None, end
            # Models open the next call without having closed the last one.
            elif not closing and name == tag == repeating:
                blocks.append(TextBlock(tag, opened_at, begin, start, start, False))
                opened, position = (name, start, end), end
            continue
        if closing and not stray:
            continue
        if start > position:
            blocks.append(TextBlock("", position, position, start, start))
        position = end
        if closing:
            blocks.append(TextBlock(f"/{name}", start, end, end, end))
        else:
            opened = name, start, end
    if opened is not None:
        tag, opened_at, begin = opened
        blocks.append(TextBlock(tag, opened_at, begin, len(text), len(text), False))
    elif position < len(text):
        blocks.append(TextBlock("", position, position, len(text), len(text)))
    return blocks


@lru_cache(maxsize=32)
def _tags(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<(/?)({'|'.join(map(re.escape, names))})>")


# -- calls -------------------------------------------------------------------------------------------------------------


class TextCall(NamedTuple):
    """A call as a text has it.

    Attributes:
        name: of the tool; `NAMELESS` where none can be read.
        arguments: as they were written, `"{}"` for none; the whole body where they cannot be told from the rest.
        error: what is wrong with the call; empty where nothing is.
        start: where it begins in the text, its marks included.
        end: where it ends.
        closed: whether it is complete: its closing mark is there, or what it consists of has ended.
    """

    name: str
    arguments: str
    error: str = ""
    start: int = 0
    end: int = 0
    closed: bool = True


@dataclass(frozen=True, slots=True)
class CallText:
    """A text with its calls taken out.

    Attributes:
        calls: in the order of the text. While the text is still being written, those that are `closed` stay as they
            are whatever follows.
        outside: what stands before, between and behind the calls, one text for each gap that is not empty.
        unclosed: the text ends inside a call.
    """

    calls: tuple[TextCall, ...]
    outside: tuple[str, ...]
    unclosed: bool = False


def read_tool_calls(
    text: str, dialect: Literal["hermes", "llama"] = "hermes", *, tools: Tools = (), thoughts: Sequence[str] = ()
) -> CallText:
    """Read the calls of a text.

    A mark that is never closed, and that nothing like a call follows, is text: the model only speaks of it.

    Args:
        dialect: `hermes` has calls in `<tool_call>` tags, as Qwen and Qwen Coder write them; `llama` bare JSON objects.
        tools: what was offered.
        thoughts: tags, such as `think`, whose inside holds no calls. It stays in the text. Not for `llama`.
    """
    calls = tuple(_find_objects(text) if dialect == "llama" else _find_tagged(text, tools, thoughts))
    outside: list[str] = []
    position = 0
    for call in calls:
        outside.append(text[position : call.start])
        position = call.end
    outside.append(text[position:])
    unclosed = bool(calls) and not calls[-1].closed and calls[-1].end == len(text)
    return CallText(calls, tuple(filter(None, outside)), unclosed)


def read_tool_call(body: str, dialect: Literal["hermes", "harmony"] = "hermes", tools: Tools = ()) -> TextCall:
    """Read what stands between the marks of one call; `harmony` is the format of gpt-oss."""
    return _read_harmony(body.strip()) if dialect == "harmony" else _read_tagged(body.strip(), tools)


def write_tool_call(name: str, arguments: Any, *, gap: str = "\n") -> str:
    """Write a call in `<tool_call>` tags.

    Tags inside the arguments are written as escapes, which read the same and end no block.

    Args:
        arguments: data, or the JSON text of it.
        gap: what stands between the tags and the call.
    """
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    call = f'{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {given}}}'
    call = _TAG.sub(lambda _: "\\u003c", call)  # `<` stands in texts only, where an escape reads the same
    return f"<tool_call>{gap}{call}{gap}</tool_call>"


def name_in(body: str) -> str:
    """The name of the tool in a JSON object that cannot be read; `NAMELESS` if there is none."""
    found = _NAME.search(body)
    return found[1] if found else NAMELESS


_NAME = re.compile(r'"name"\s*:\s*"([^"\\]{1,64})"')
_LOOSE_NAME = re.compile(r"""["']name["']\s*:\s*["']([^"'\s]{1,128})["']""")
_ARGUMENTS = re.compile(r"""["'](?:arguments|parameters)["']\s*:\s*""")
# `<|` and `<｜` begin the special tokens of chat templates, which some tokenizers read from plain text.
_TAG = re.compile(r"<(?=/?(?:think|reasoning|tool_call|answer)\b|[|｜])")
_BLANK = re.compile(r"[ \t\n\r]*")
_scan = json.JSONDecoder().raw_decode


# -- bodies in JSON ----------------------------------------------------------------------------------------------------


def _read_object(body: str) -> TextCall:
    """`{"name": …, "arguments": …}`; also `parameters`."""
    fields, behind = _fields(body)
    name = _string(fields.get("name", ""))
    error = "the call is not one complete JSON object" if behind is None or behind else ""
    # In broken JSON the name may stand in single quotes; the error then still names the tool.
    if not name and (found := _LOOSE_NAME.search(body)):
        name = found[1]
    if not name:
        return TextCall(NAMELESS, body, 'a call is {"name": "...", "arguments": {...}}; "name" is missing')
    arguments = fields.get("arguments", fields.get("parameters"))
    if arguments is None and (place := _ARGUMENTS.search(body)):
        arguments = _without_last_brace(body[place.end() :])
    if not arguments and (not body.endswith("}") or (behind and "}" in behind)):
        return TextCall(name, body, error)  # cut off before its arguments: to run it without any would be a guess
    return TextCall(name, written_arguments(arguments), error)


def written_arguments(given: Any) -> str:
    """The arguments of a call as JSON text; none at all are an empty object."""
    text = given.strip() if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return "{}" if text in ("", "null", '""') else text


def _fields(body: str) -> tuple[dict[str, str], str | None]:
    """The raw texts of the fields of a JSON object, and what stands behind its end; None if it does not end.

    A field that is broken takes the rest.
    """
    fields: dict[str, str] = {}
    if not body.startswith("{"):
        return fields, None
    position = _skip(body, 1)
    try:
        while body[position] == '"':
            key, position = _scan(body, position)
            position = _skip(body, position)
            if body[position] != ":":
                break
            begin = _skip(body, position + 1)
            try:
                _, position = _scan(body, begin)
            except (ValueError, RecursionError):
                fields.setdefault(key, _without_last_brace(body[begin:]))
                break
            end, position = position, _skip(body, position)
            if body[position : position + 1] != ",":
                behind = body[position + 1 :] if body.startswith("}", position) else None
                extra = "}" in (behind or "")  # a brace too many, or a second object: which one is wrong is not clear
                fields.setdefault(key, _without_last_brace(body[begin:]) if extra else body[begin:end])
                return fields, behind
            fields.setdefault(key, body[begin:end])
            position = _skip(body, position + 1)
    except (ValueError, IndexError):
        pass
    return fields, None


def _skip(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _string(raw: str) -> str:
    """The value of a raw JSON string, `""` for anything else."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return ""
    return value.strip() if isinstance(value, str) else ""


def _without_last_brace(text: str) -> str:
    """Without the brace that closed the object around it."""
    text = text.strip()
    return text[:-1].rstrip() if text.endswith("}") and text.count("}") > text.count("{") else text


# -- bodies in tags ----------------------------------------------------------------------------------------------------

_FUNCTION = re.compile(r"<function=([^<>\s]{1,200})\s*>")
_PARAMETER = re.compile(r"<parameter=(?P<key>[^<>\s]{1,200})\s*>|(?P<close></parameter>)")


def _read_tagged(body: str, tools: Tools) -> TextCall:
    """A JSON object, or Qwen Coder's `<function=name><parameter=key>value</parameter></function>`."""
    function = _FUNCTION.match(body)
    if function is None:
        return _read_object(body)
    # `partition` also serves a body without `</function>`: then all that follows is inside.
    inside = body[function.end() :].partition("</function>")[0].strip()
    name, given = function[1], _parameters(inside)
    if not given and inside:
        return TextCall(name, inside, "the call has no complete parameter")
    known = _properties(name, tools)
    arguments = {key: _value(text, known.get(key, {})) for key, text in given}
    return TextCall(name, json.dumps(arguments, ensure_ascii=False))


def _parameters(inside: str) -> list[tuple[str, str]]:
    """The closed parameters, as they were written, in one pass."""
    given: list[tuple[str, str]] = []
    key, begin = "", -1
    for mark in _PARAMETER.finditer(inside):
        if mark["close"] and begin >= 0:
            # One line break on each side is the template's; any further ones belong to the value.
            given.append((key, inside[begin : mark.start()].removeprefix("\n").removesuffix("\n")))
            begin = -1
        elif mark["key"] and begin < 0:
            key, begin = mark["key"], mark.end()
    return given


def _value(text: str, schema: Any) -> Any:
    """A value that is written without quotes: what its schema says, else JSON, else text."""
    # A text such as 007 or `true` must not become a number or a boolean.
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _properties(name: str, tools: Tools) -> Mapping[str, Any]:
    for tool in tools:
        # Chat completions wrap the function object, the Responses API does not.
        function = tool.get("function", tool)
        if function.get("name") == name:
            properties: Mapping[str, Any] = (function.get("parameters") or {}).get("properties") or {}
            return properties
    return {}


_RECIPIENT = re.compile(r"to=(?:functions\.)?([^\s<]{1,200})")


def _read_harmony(body: str) -> TextCall:
    """gpt-oss: a header with `to=functions.name`, then `<|message|>` and the arguments."""
    header, mark, arguments = body.partition("<|message|>")
    found = _RECIPIENT.search(header)
    error = "" if mark else "the call ends before its arguments"
    return TextCall(found[1] if found else NAMELESS, written_arguments(arguments), error)


# -- calls in a text ---------------------------------------------------------------------------------------------------


def _find_tagged(text: str, tools: Tools, thoughts: Sequence[str]) -> Iterator[TextCall]:
    """Calls in tags. One without its closing tag has to begin like a call."""
    for block in cut_blocks(text, ("tool_call", *thoughts), repeating="tool_call", stray=False):
        if block.tag == "tool_call":
            body = text[block.begin : block.stop].strip()
            if block.closed or body.startswith(("{", "<function=")):
                yield _read_tagged(body, tools)._replace(start=block.start, end=block.end, closed=block.closed)


_FAILURES = 200
_PASSES = 8
"""What braces that open no object may cost, all together: their number, and passes over the text."""
_OBJECT = re.compile(r"(?:<\|python_tag\|>\s{0,8})?(?P<object>\{)")
_SEPARATOR = re.compile(r"(?:\s{0,8};)?")


def _find_objects(text: str) -> Iterator[TextCall]:
    """Llama 3: JSON objects that have a name, with `;` or other text between them."""
    position = failures = wasted = 0
    while failures < _FAILURES and wasted <= _PASSES * len(text) and (found := _OBJECT.search(text, position)):
        begin = found.start("object")
        try:
            data, position = _scan(text, begin)
        except (ValueError, RecursionError) as error:
            failures += 1
            # A failed scan may have read to the end: counted, so that braces in prose cannot cost quadratic time.
            wasted += getattr(error, "pos", len(text)) - begin
            position = begin + 1
            # A call that is cut off or broken; any other brace that opens no object is prose.
            if text[position : position + 16].lstrip().startswith('"name"'):
                call = _read_object(text[begin:].rstrip())
                yield call._replace(start=found.start(), end=len(text), closed=False)
                return
            continue
        if isinstance(data, dict) and isinstance(data.get("name"), str):
            call = _read_object(text[begin:position])
            separator = _SEPARATOR.match(text, position)
            yield call._replace(start=found.start(), end=separator.end() if separator else position)
