"""A corrector of typed answers: a program in the place of a model that is told what is wrong with its answer.

It is given one request, as a model would be: the schema, its own reply and the message. It looks at nothing else, and
edits its reply only at the places that the message names. The schema is used for two things: to make a value for such a
place, and to close a text that broke off. What the message does not name stays as it was written.
"""

from __future__ import annotations

import contextlib
import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import concertino as ct
from concertino.schema import SchemaRefused, compile_schema

Path = tuple[str | int, ...]

_TOLD = re.compile(
    r"\n\nAnswer:\n(?P<reply>.*)\n\nWhat is wrong with it:\s(?P<wrong>.*)\n\nWrite the JSON value now\.\Z", re.DOTALL
)
_LINE = re.compile(r"(?P<place>\(root\)|/.*?): expected (?P<expected>.*), got (?P<got>.*)")
_NOTHING = object()


def corrected(request: ct.ChatRequest, *, deaf: bool = False) -> str:
    """The reply to a request for a corrected answer; if `deaf`, without having read what is wrong."""
    schema = json.loads(request.messages[0].text.partition("JSON schema:\n")[2])
    told = _TOLD.search(request.messages[-1].text)
    assert told is not None, request.messages[-1].text
    reply, wrong = told["reply"], "" if deaf else told["wrong"]
    try:
        value = json.loads(reply)
    except ValueError:
        # What cannot be read is what the message is about.
        return json.dumps(_read_again(reply, schema), ensure_ascii=False)
    return json.dumps(_edited(value, wrong, schema), ensure_ascii=False)


# -- a text that was not read ------------------------------------------------------------------------------------------


def _read_again(reply: str, schema: Any) -> Any:
    """The value in a text that is not JSON: the last whole one that fits, else the text closed where it broke off."""
    decoder = json.JSONDecoder()
    found: list[Any] = []
    end = 0
    for begin in re.finditer(r'[\[{"]|-?\d|\b(?:true|false|null)\b', reply):
        if begin.start() >= end:
            with contextlib.suppress(ValueError):
                value, end = decoder.raw_decode(reply, begin.start())
                found.append(value)
        if not found and reply.lstrip().startswith(("[", "{", '"')):
            return _closed(reply.lstrip(), schema)  # what opens first never ends
    rank = [(_fits(value, schema), isinstance(value, (dict, list)), place) for place, value in enumerate(found)]
    return found[max(rank)[2]] if rank else _made(schema, schema)


def _closed(text: str, schema: Any) -> Any:
    """A JSON text that broke off, closed; what the unfinished objects still need is made from the schema."""
    path = _open_at_end(text)[1]
    for cut in range(len(text), 0, -1):
        stack, _ = _open_at_end(text[:cut])
        with contextlib.suppress(ValueError):
            value = json.loads(text[:cut] + "".join("}" if bracket == "{" else "]" for bracket in reversed(stack)))
            break
    else:
        return _made(schema, schema)
    for depth in range(len(path) + 1):
        here = _at(value, path[:depth])
        if isinstance(here, dict):
            for name in _required(schema, path[:depth]):
                here.setdefault(name, _made_at(schema, (*path[:depth], name)))
    return value


def _open_at_end(text: str) -> tuple[list[str], Path]:
    """The brackets that are open at the end of a text, and the path of the innermost."""
    stack: list[str] = []
    keys: list[str | int] = []
    last, expects_key = "", False
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]', text):
        sign = token.group()
        if sign in "[{":
            stack.append(sign)
            keys.append(0 if sign == "[" else "")
            expects_key = sign == "{"
        elif sign in "]}" and stack:
            stack.pop()
            keys.pop()
        elif sign == "," and stack:
            if stack[-1] == "[":
                keys[-1] = int(keys[-1]) + 1
            expects_key = stack[-1] == "{"
        elif sign == ":" and stack:
            keys[-1], expects_key = json.loads(last), False
        elif expects_key:
            last = sign
    return stack, tuple(keys[:-1])


# -- a value that broke the schema -------------------------------------------------------------------------------------


def _edited(value: Any, wrong: str, schema: Any) -> Any:
    """The value with an edit at each place that the message names."""
    holder = [copy.deepcopy(value)]
    named = [found for line in wrong.splitlines() if (found := _LINE.fullmatch(line.strip()))]
    # What is missing first: it may stand in what has to go.
    for line in sorted(named, key=lambda each: "property '" not in each["expected"]):
        for path in _paths(line["place"], holder[0]):
            _edit(holder, path, line["expected"], line["got"], schema)
    return holder[0]


def _paths(pointer: str, value: Any) -> Iterator[Path]:
    """The path of a JSON pointer in a value."""
    path: list[str | int] = []
    here = value
    for step in pointer.split("/")[1:] if pointer.startswith("/") else []:
        name = step.replace("~1", "/").replace("~0", "~")
        key: str | int = int(name) if isinstance(here, list) and name.isdigit() else name
        here = _member(here, key)
        if here is _NOTHING:
            return
        path.append(key)
    yield tuple(path)


def _edit(holder: list[Any], path: Path, expected: str, got: str, schema: Any) -> None:
    """One edit, as a line of the message asks for it."""
    here = _at(holder[0], path)
    parent: Any = _at(holder[0], path[:-1]) if path else holder
    key = path[-1] if path else 0
    if isinstance(here, dict) and (missing := re.match(r"(?:required )?property '(.*?)'(?: \(|, needed|$)", expected)):
        parent[key] = _with_member(here, missing[1], got, path, schema)
    elif isinstance(here, dict) and (expected.startswith("only ") or expected == "no further property"):
        parent[key] = _without_member(here, got, expected)
    elif expected == "no value here; leave it out" and path:
        del parent[key]
    else:
        parent[key] = _instead(here, expected, path, schema)


def _with_member(here: dict[str, Any], name: str, got: str, path: Path, schema: Any) -> Any:
    """An object with the property that it lacks: it stands one level down, under another name, or has to be made."""
    if name in here:
        return here
    wrapped = [inner for inner in here.values() if isinstance(inner, dict) and name in inner]
    if len(here) == 1 and wrapped:
        return wrapped[0]
    near = re.match(r"'(.*)': rename it\?", got)
    if near and near[1] in here:
        here[name] = here.pop(near[1])
    else:
        here[name] = _made_at(schema, (*path, name))
    return here


def _without_member(here: dict[str, Any], got: str, expected: str) -> Any:
    """An object without the property that is none of it, with that one under its right name, or what it holds."""
    name = next((key for key in here if got == "'" + json.dumps(key, ensure_ascii=False)[1:-1] + "'"), None)
    if name is None:
        return here
    value = here.pop(name)
    known = re.findall(r"'([^']*)'", expected)
    if not here and isinstance(value, dict) and any(each in value for each in known):
        return value
    if expected.startswith("only known") and known[0] not in here:
        here[known[0]] = value
    return here


def _instead(here: Any, expected: str, path: Path, schema: Any) -> Any:
    """What belongs in the place of a value."""
    for turned in _turned(here):
        if _is_any(turned, expected):
            return turned
    if number := re.match(r"a number (<=|>=|<|>) (\S+)", expected):
        return json.loads(number[2]) + {"<": -1, ">": 1}.get(number[1], 0)
    if number := re.match(r"a multiple of (\S+)", expected):
        step = json.loads(number[1])
        return round(here / step) * step
    if count := re.match(r"at (least|most) (\d+) (character|item)", expected):
        wanted = int(count[2])
        if count[1] == "most":
            return here[:wanted]
        if count[3] == "character":
            return here + "x" * (wanted - len(here))
    if "such as " in expected:
        return expected.partition("such as ")[2]
    if choice := re.match(r'(?:one of )?("(?:[^"\\]|\\.)*"|-?[\d.]+|true|false|null)(?:$|,| or )', expected):
        return json.loads(choice[1])
    return _made_at(schema, path, expected)


def _turned(here: Any) -> Iterator[Any]:
    """The same content in another form: out of a text, out of a list or an object of one, into a list."""
    if isinstance(here, str):
        with contextlib.suppress(ValueError):
            yield json.loads(here)
    if isinstance(here, list) and len(here) == 1:
        yield here[0]
    if isinstance(here, dict) and len(here) == 1:
        yield next(iter(here.values()))
    yield [here]


_NAMES = ("string", "integer", "number", "boolean", "null", "object", "array")


def _is_any(value: Any, expected: str) -> bool:
    """Whether a value is of one of the types of a phrase such as 'string (date), integer or null'."""
    return any(_is_a(value, each) for each in re.split(r", (?!')| or ", expected))


def _is_a(value: Any, expected: str) -> bool:
    """Whether a value has the type that a phrase begins with, such as 'array of string'."""
    wanted, _, rest = expected.partition(" ")
    if wanted not in _NAMES or not _is_kind(_kind(value), wanted):
        return False
    if wanted == "array" and rest.startswith("of "):
        return all(_is_a(item, rest[3:]) for item in value)
    names = re.findall(r"'([^']*)'", rest) if wanted == "object" else []
    return all(name in value for name in names)


def _is_kind(kind: str, wanted: str) -> bool:
    return kind == wanted or (kind == "integer" and wanted == "number")


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return kinds.get(type(value), "null")


# -- the schema --------------------------------------------------------------------------------------------------------


def _made_at(schema: Any, path: Path, expected: str = "") -> Any:
    """A value for a place: by the schema, as far as it gives one of the type that the message asks for."""
    for wanted in _schemas_at(schema, path):
        value = _made(wanted, schema)
        if not expected or not expected.startswith(_NAMES) or _is_any(value, expected):
            return value
    simple: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True, "null": None, "object": {}, "array": []}
    return simple.get(re.split(r"[ ,]", expected)[0], "text")


def _made(wanted: Any, schema: Any) -> Any:
    """A value of a schema inside another one."""
    if not isinstance(wanted, dict):
        return "text"
    root = {word: schema[word] for word in ("$defs", "definitions", "$schema") if word in schema}
    try:
        return compile_schema({**wanted, **root}).example()
    except SchemaRefused:
        return "text"


def _schemas_at(schema: Any, path: Path) -> list[Any]:
    """What a schema says of a place, once for each way that leads there."""
    found = [schema]
    for key in path:
        found = [member for part in found for inner in _parts(part, schema) for member in _members(inner, key)]
    return found


def _parts(part: Any, schema: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """A schema with what its references, conjunctions and conditions add; of alternatives, each."""
    if not isinstance(part, dict) or depth > 8:
        return
    yield part
    inner = [each for word in ("allOf", "anyOf", "oneOf") for each in part.get(word, ())]
    for each in [*inner, *(part[word] for word in ("then", "else") if word in part)]:
        yield from _parts(each, schema, depth + 1)
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target: Any = schema
        for step in reference[1:].split("/")[1:]:
            target = _member(target, step.replace("~1", "/").replace("~0", "~"))
        yield from _parts(target, schema, depth + 1)


def _members(part: dict[str, Any], key: str | int) -> list[Any]:
    """What one schema, without its references, says of a member."""
    if isinstance(key, int):
        prefix = part.get("prefixItems", ())
        return [prefix[key]] if key < len(prefix) else [part["items"]] if "items" in part else []
    named = [part["properties"][key]] if key in part.get("properties", {}) else []
    for pattern, member in part.get("patternProperties", {}).items():
        with contextlib.suppress(re.error):
            named += [member] if re.search(pattern, key) else []
    return named or ([part["additionalProperties"]] if "additionalProperties" in part else [])


def _required(schema: Any, path: Path) -> list[str]:
    parts = (part for each in _schemas_at(schema, path) for part in _parts(each, schema))
    return [name for part in parts for name in part.get("required", ())]


def _fits(value: Any, schema: Any) -> bool:
    """Whether a value has one of the types that the root of a schema names."""
    given = [part["type"] for part in _parts(schema, schema) if "type" in part]
    names = [name for each in given for name in ([each] if isinstance(each, str) else each)]
    return not names or any(_is_kind(_kind(value), name) for name in names)


# -- values ------------------------------------------------------------------------------------------------------------


def _member(here: Any, key: str | int) -> Any:
    if isinstance(here, dict):
        return here.get(key, _NOTHING)
    if isinstance(here, list) and isinstance(key, int) and key < len(here):
        return here[key]
    return _NOTHING


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = _member(value, key)
    return value
