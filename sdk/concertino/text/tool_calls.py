"""Tool calls in the text of a model: one reader and one writer, with the dialects of models as a table.

    found = read_tool_calls('Let me see. <tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>')
    found.calls[0].name, found.calls[0].arguments  # "add", '{"a": 2}'

Any text is read, in time linear in its length, and none raises. A broken call is still a call: it keeps what can be
read of it and says in `error` what is wrong, so that the model can be told. Arguments are kept as they were written,
neither parsed nor serialised again: validation has to see a duplicate key or a number that is too large.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

NAMELESS = "?"
"""The name of a call whose name cannot be read."""

Tools = Sequence[Mapping[str, Any]]
"""Function objects that were offered. Dialects that write values without quotes need the types of the parameters."""

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
    marks = ((match[2], bool(match[1]), *match.span()) for match in _tags(tuple(tags)).finditer(text))
    return _cut(text, marks, repeating, stray)


@lru_cache(maxsize=32)
def _tags(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"<(/?)({'|'.join(map(re.escape, names))})>")


def _cut(text: str, marks: Iterable[tuple[str, bool, int, int]], repeating: str, stray: bool) -> list[TextBlock]:
    """Cut at marks, each of which is a name, whether it closes, and its place. One pass, hence linear."""
    blocks: list[TextBlock] = []
    opened: tuple[str, int, int] | None = None
    position = 0
    for name, closing, start, end in marks:
        if opened is not None:
            tag, opened_at, begin = opened
            if closing and name == tag:
                blocks.append(TextBlock(tag, opened_at, begin, start, end))
                opened, position = None, end
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


def read_tool_calls(text: str, dialect: str = "hermes", *, tools: Tools = (), thoughts: Sequence[str] = ()) -> CallText:
    """Read the calls of a text.

    A mark that is never closed, and that nothing like a call follows, is text: the model only speaks of it.

    Args:
        dialect: a name in `DIALECTS`.
        tools: what was offered.
        thoughts: tags, such as `think`, whose inside holds no calls. It stays in the text. For dialects whose calls
            stand between marks.

    Raises:
        ValueError: there is no such dialect.
    """
    calls = tuple(_named(dialect).find(text, tools, thoughts))
    outside: list[str] = []
    position = 0
    for call in calls:
        outside.append(text[position : call.start])
        position = call.end
    outside.append(text[position:])
    unclosed = bool(calls) and not calls[-1].closed and calls[-1].end == len(text)
    return CallText(calls, tuple(filter(None, outside)), unclosed)


def read_tool_call(body: str, dialect: str = "hermes", tools: Tools = ()) -> TextCall:
    """Read what stands between the marks of one call."""
    return _named(dialect).read(body.strip(), tools)


def write_tool_call(name: str, arguments: Any, dialect: str = "hermes", *, gap: str = "\n") -> str:
    """Write a call as a model of the dialect would.

    Tags inside the arguments are written as escapes, which read the same and end no block.

    Args:
        arguments: data, or the JSON text of it.
        gap: what stands between the marks and the call, in the dialects that allow a choice.
    """
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return _named(dialect).write(name, _escaped(given), gap)


def _named(dialect: str) -> Dialect:
    if dialect not in DIALECTS:
        raise ValueError(f"dialect={dialect!r}; expected one of {', '.join(DIALECTS)}")
    return DIALECTS[dialect]


def name_in(body: str) -> str:
    """The name of the tool in a JSON object that cannot be read; `NAMELESS` if there is none."""
    found = _NAME.search(body)
    return found[1] if found else NAMELESS


_Find = Callable[[str, Tools, Sequence[str]], Iterable[TextCall]]
_Read = Callable[[str, Tools], TextCall]


class Dialect(NamedTuple):
    """How models of one family write calls.

    Attributes:
        find: the calls of a text.
        read: the call between two marks.
        write: a call, of its name, the JSON text of its arguments, and the gap inside the marks.
    """

    find: _Find
    read: _Read
    write: Callable[[str, str, str], str]


_NAME = re.compile(r'"name"\s*:\s*"([^"\\]{1,64})"')
_LOOSE_NAME = re.compile(r"""["']name["']\s*:\s*["']([^"'\s]{1,128})["']""")
_ARGUMENTS = re.compile(r"""["'](?:arguments|parameters)["']\s*:\s*""")
_ESCAPED = re.compile(r"<(?=/?(?:think|reasoning|tool_call|answer)\b|[|｜])")
_BLANK = re.compile(r"[ \t\n\r]*")
_scan = json.JSONDecoder().raw_decode


def _escaped(written: str) -> str:
    """JSON text without tags; `<` stands in texts only, where an escape reads the same."""
    return _ESCAPED.sub(lambda _: "\\u003c", written)


def _call_object(name: str, arguments: str, key: str = "arguments") -> str:
    return f'{{"name": {_escaped(json.dumps(name, ensure_ascii=False))}, "{key}": {arguments}}}'


# -- bodies in JSON ----------------------------------------------------------------------------------------------------


def _read_object(body: str) -> TextCall:
    """`{"name": …, "arguments": …}`; also `parameters`."""
    fields, behind = _fields(body)
    name = _string(fields.get("name", ""))
    error = "the call is not one complete JSON object" if behind is None or behind else ""
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
_PARAMETER = re.compile(r"(?P<open><parameter=(?P<key>[^<>\s]{1,200})\s*>)|(?P<close></parameter>)")
_PAIR = re.compile(r"<arg_key>([^<>]{1,200})</arg_key>\s*(?P<open><arg_value>)|(?P<close></arg_value>)")


def _read_hermes(body: str, tools: Tools) -> TextCall:
    """A JSON object, or Qwen Coder's `<function=name><parameter=key>value</parameter></function>`."""
    function = _FUNCTION.match(body)
    if function is None:
        return _read_object(body)
    inside = body[function.end() :].partition("</function>")[0].strip()
    given = [(key, value.removeprefix("\n").removesuffix("\n")) for key, value in _pairs(inside, _PARAMETER)]
    return _read_pairs(function[1], inside, given, tools)


def _read_glm(body: str, tools: Tools) -> TextCall:
    """GLM's `name <arg_key>key</arg_key><arg_value>value</arg_value>`."""
    name, mark, _ = body.partition("<arg_key>")
    inside = body[len(name) :]
    name = name.strip()
    if not name or not name.isprintable() or (not mark and name.startswith("{")):
        return TextCall(NAMELESS, body, "a call begins with the name of a tool")
    return _read_pairs(name, inside, _pairs(inside, _PAIR), tools)


def _pairs(inside: str, marks: re.Pattern[str]) -> list[tuple[str, str]]:
    """The closed pairs of key and value, in one pass."""
    pairs: list[tuple[str, str]] = []
    key, begin = "", -1
    for mark in marks.finditer(inside):
        if mark["close"] and begin >= 0:
            pairs.append((key, inside[begin : mark.start()]))
            begin = -1
        elif mark["open"] and begin < 0:
            key, begin = mark["key"] if "key" in marks.groupindex else mark[1], mark.end()
    return pairs


def _read_pairs(name: str, inside: str, given: Sequence[tuple[str, str]], tools: Tools) -> TextCall:
    if not given and inside:
        return TextCall(name, inside, "the call has no complete parameter")
    known = _parameters(name, tools)
    arguments = {key: _value(text, known.get(key, {})) for key, text in given}
    return TextCall(name, json.dumps(arguments, ensure_ascii=False))


def _value(text: str, schema: Any) -> Any:
    """A value that is written without quotes: what its schema says, else JSON, else text."""
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _parameters(name: str, tools: Tools) -> Mapping[str, Any]:
    for tool in tools:
        function = tool.get("function", tool)
        if function.get("name") == name:
            properties: Mapping[str, Any] = (function.get("parameters") or {}).get("properties") or {}
            return properties
    return {}


def _unquoted(arguments: str) -> Iterator[tuple[str, str]]:
    """The values of an object as the tagged dialects write them: texts without quotes, the rest in JSON."""
    for key, value in json.loads(arguments).items():
        yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _write_qwen(name: str, arguments: str, gap: str) -> str:
    given = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in _unquoted(arguments))
    return f"<tool_call>\n<function={name}>\n{given}</function>\n</tool_call>"


def _write_glm(name: str, arguments: str, gap: str) -> str:
    given = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in _unquoted(arguments)
    )
    return f"<tool_call>{name}\n{given}</tool_call>"


# -- bodies behind a name ----------------------------------------------------------------------------------------------

_RECIPIENT = re.compile(r"to=(?:functions\.)?([^\s<]{1,200})")


def _read_harmony(body: str, tools: Tools) -> TextCall:
    """gpt-oss: a header with `to=functions.name`, then `<|message|>` and the arguments."""
    header, mark, arguments = body.partition("<|message|>")
    found = _RECIPIENT.search(header)
    error = "" if mark else "the call ends before its arguments"
    return TextCall(found[1] if found else NAMELESS, written_arguments(arguments), error)


def _read_deepseek(body: str, tools: Tools) -> TextCall:
    """`name<｜tool▁sep｜>{…}`, or `function<｜tool▁sep｜>name` and the arguments in a fence."""
    name, mark, rest = body.partition("<｜tool▁sep｜>")
    if name.strip() == "function":
        name, _, rest = rest.partition("\n")
        rest = rest.strip().removeprefix("```json").removesuffix("```")
    name = name.strip()
    error = "" if name and mark else "a call is name<｜tool▁sep｜>{...}"
    return TextCall(name or NAMELESS, written_arguments(rest), error)


# -- calls between marks -----------------------------------------------------------------------------------------------


def _between(opening: str, closing: str, read: _Read, likely: tuple[str, ...] = ("",)) -> _Find:
    """A finder of calls between marks; without its closing mark, a call begins with one of `likely`."""

    def find(text: str, tools: Tools, thoughts: Sequence[str]) -> Iterator[TextCall]:
        marks = (
            ("" if match["call"] else match["thought"] or "", bool(match["end"] or match["slash"]), *match.span())
            for match in _marks(opening, closing, tuple(thoughts)).finditer(text)
        )
        named = ((name or "call", closes, start, end) for name, closes, start, end in marks)
        for block in _cut(text, named, "call", False):
            if block.tag == "call":
                body = text[block.begin : block.stop].strip()
                if block.closed or body.startswith(likely):
                    yield read(body, tools)._replace(start=block.start, end=block.end, closed=block.closed)

    return find


@lru_cache(maxsize=32)
def _marks(opening: str, closing: str, thoughts: tuple[str, ...]) -> re.Pattern[str]:
    tags = "|".join(map(re.escape, thoughts)) or "(?!)"
    return re.compile(rf"(?P<call>{opening})|(?P<end>{closing})|<(?P<slash>/?)(?P<thought>{tags})>")


# -- calls without marks -----------------------------------------------------------------------------------------------

_FAILURES = 200
_PASSES = 8
"""What braces that open no object may cost, all together: their number, and passes over the text."""
_LONGEST_LIST = 20_000
"""Characters of a list of calls in Python's syntax. Its parser needs memory, and stack, for everything in it."""
_OBJECT = re.compile(r"(?:<\|python_tag\|>\s{0,8})?(?P<object>\{)")
_SEPARATOR = re.compile(r"(?:\s{0,8};)?")


def _find_objects(text: str, tools: Tools, thoughts: Sequence[str]) -> Iterator[TextCall]:
    """Llama 3: JSON objects that have a name, with `;` or other text between them."""
    position = failures = wasted = 0
    while failures < _FAILURES and wasted <= _PASSES * len(text) and (found := _OBJECT.search(text, position)):
        begin = found.start("object")
        try:
            data, position = _scan(text, begin)
        except (ValueError, RecursionError) as error:
            failures += 1
            wasted += getattr(error, "pos", len(text)) - begin
            position = begin + 1
            if text[position : position + 16].lstrip().startswith('"name"'):
                call = _read_object(text[begin:].rstrip())
                yield call._replace(start=found.start(), end=len(text), closed=False)
                return
            continue
        if isinstance(data, dict) and isinstance(data.get("name"), str):
            call = _read_object(text[begin:position])
            separator = _SEPARATOR.match(text, position)
            yield call._replace(start=found.start(), end=separator.end() if separator else position)


def _find_mistral(text: str, tools: Tools, thoughts: Sequence[str]) -> Iterator[TextCall]:
    """`[TOOL_CALLS]` with a list of objects, or with `name[ARGS]{…}`."""
    mark = "[TOOL_CALLS]"
    start = text.find(mark)
    while start >= 0:
        following = text.find(mark, start + len(mark))
        end = len(text) if following < 0 else following
        yield from _read_mistral(text[start + len(mark) : end], start, start + len(mark))
        start = following


def _read_mistral(part: str, start: int, begin: int) -> Iterator[TextCall]:
    if not part.lstrip().startswith("["):
        name, mark, _ = part.partition("{")
        at = len(name)
        try:
            at = _scan(part, at)[1]
            closed = True
        except (ValueError, RecursionError):
            at, closed = len(part), False
        name = name.strip().removesuffix("[ARGS]").strip()
        error = "" if closed and name else "a call is [TOOL_CALLS]name[ARGS]{...}"
        yield TextCall(
            name or NAMELESS, (mark and part[part.index("{") : at]) or "{}", error, start, begin + at, closed
        )
        return
    place = _skip(part, part.index("[") + 1)
    while place < len(part) and part[place] == "{":
        try:
            at, closed = _scan(part, place)[1], True
        except (ValueError, RecursionError):
            at, closed = len(part), False
        following = _skip(part, at)
        following += part[following : following + 1] in (",", "]") and following < len(part)
        yield _read_object(part[place:at].strip())._replace(start=start, end=begin + following, closed=closed)
        start, place = begin + following, _skip(part, following)


def _find_pythonic(text: str, tools: Tools, thoughts: Sequence[str]) -> Iterator[TextCall]:
    """The whole text is a list of calls in Python's syntax: `[add(a=2), now()]`. Nothing is run."""
    body = text.strip()
    if not (body.startswith("[") and body.endswith(")]")) or len(body) > _LONGEST_LIST:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            tree = ast.parse(body, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    calls = tree.elts if isinstance(tree, ast.List) else []
    end = 0
    for number, node in enumerate(calls, 1):
        start, end = end, len(text) if number == len(calls) else end
        yield _read_node(node, body)._replace(start=start, end=end)


def _read_node(node: ast.expr, body: str) -> TextCall:
    if not isinstance(node, ast.Call):
        return TextCall(NAMELESS, ast.get_source_segment(body, node) or "", "this is not a call")
    name = ast.unparse(node.func)
    try:
        if node.args:
            raise ValueError("arguments need names")
        given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
        return TextCall(name, json.dumps(given, ensure_ascii=False))
    except (ValueError, TypeError, RecursionError) as error:
        return TextCall(name, ast.unparse(node), f"the arguments cannot be read: {error}")


def _write_python(name: str, arguments: str, gap: str) -> str:
    given = ", ".join(f"{key}={value!r}" for key, value in json.loads(arguments).items())
    return f"[{name}({given})]"


# -- the table ---------------------------------------------------------------------------------------------------------


def _plain(body: str, tools: Tools) -> TextCall:
    return _read_object(body)


_IN_TAGS = _between("<tool_call>", "</tool_call>", _read_hermes, ("{", "<function="))
DIALECTS: dict[str, Dialect] = {
    "hermes": Dialect(
        _IN_TAGS, _read_hermes, lambda name, given, gap: f"<tool_call>{gap}{_call_object(name, given)}{gap}</tool_call>"
    ),
    "qwen-coder": Dialect(_IN_TAGS, _read_hermes, _write_qwen),
    "glm": Dialect(_between("<tool_call>", "</tool_call>", _read_glm), _read_glm, _write_glm),
    "llama": Dialect(_find_objects, _plain, lambda name, given, gap: _call_object(name, given, "parameters")),
    "mistral": Dialect(_find_mistral, _plain, lambda name, given, gap: f"[TOOL_CALLS][{_call_object(name, given)}]"),
    "pythonic": Dialect(_find_pythonic, _plain, _write_python),
    "harmony": Dialect(
        _between(
            r"(?:<\|start\|>assistant)?(?:<\|channel\|>\w{1,20})? ?to=functions\.",
            r"<\|(?:call|end|return)\|>",
            lambda body, tools: _read_harmony(f"to={body}", tools),
        ),
        _read_harmony,
        lambda name, given, gap: (
            f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{given}<|call|>"
        ),
    ),
    "deepseek": Dialect(
        _between("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", _read_deepseek),
        _read_deepseek,
        lambda name, given, gap: f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{given}<｜tool▁call▁end｜>",
    ),
}
"""The dialects by name. `hermes` reads what Qwen Coder writes too."""
