"""Calls of functions as models write them into text, read without running any of it.

Read are JSON objects with a name and arguments (in `<tool_call>` tags, fences, lists, lines or prose; also
`{"name": {…}}` for a known name), `<function=name>{…}</function>`, and Python call text: `[f(a=1), g.h(b="x")]`. The
invariants: no text is executed; one call that cannot be read does not drop its good siblings; a call that is cut off is
not made up; the time grows with the length of the text.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .answers import spoken

# Characters of a text and of one call; the limits below bound the work on a hostile text.
_LONGEST = 400_000
_LONGEST_CALL = 20_000
_TRIES = 200
_OBJECTS = 2000
_FAULTS = 30
_UNCLOSED = 6
_TAGGED = re.compile(r"<function=([\w.\-/]{1,200})>")
_CALL = re.compile(r"(?:^|(?<=[\[,;\"'`(>]))[ \t\n\-*]{0,6}([A-Za-z_][\w.]{0,200})[ ]?\(", re.MULTILINE)
_NAMES = ("name", "function", "function_name", "tool", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "input")
_WORDS = {"true": True, "false": False, "null": None, "none": None}


@dataclass(frozen=True)
class MadeCall:
    """A call that was made, or written.

    Attributes:
        name: of the function, as it was written.
        arguments: by name.
    """

    name: str
    arguments: Mapping[str, Any]


@dataclass
class Decoded:
    """The calls of a text.

    Attributes:
        calls: those that can be read, in order.
        faults: what looks like a call and cannot be read, each with the reason and the place.
    """

    calls: list[MadeCall] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def read_calls(text: str, functions: Mapping[str, Sequence[str]]) -> Decoded:
    """The calls of a text.

    Args:
        text: what a model wrote.
        functions: the known functions, with the names of their parameters in order, for positional arguments.
    """
    # The end is kept, where calls stand; and models escape underscores as in Markdown.
    text = spoken(text)[-_LONGEST:].replace("\\_", "_")
    decoded = Decoded()
    rest = _tagged(text, decoded)
    for start, piece in itertools.islice(_objects(rest), _OBJECTS):
        # Braces of code and of sets hold no call; a call's object always has a colon.
        if ":" in piece:
            decoded.calls.extend(_made(_json(piece, start, decoded), functions, decoded))
    # Only then: the arguments of a JSON call may hold text that looks like Python calls.
    if not decoded.calls:
        _python(rest, functions, decoded)
    return decoded


def read_python_call(text: str, parameters: Mapping[str, Sequence[str]]) -> MadeCall:
    """One call in Python's syntax whose arguments are literals.

    Raises:
        ValueError: it is not; says where.
    """
    try:
        with warnings.catch_warnings():
            # Parsing warns about escapes such as "\d" in a model's text.
            warnings.simplefilter("ignore")
            node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" at column {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        raise ValueError(f"not Python{where}: {text[:80]!r}") from None
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        raise ValueError(f"not a call: {text[:80]!r}")
    name = ast.unparse(node.func)
    given = parameters.get(name, ())
    if len(node.args) > len(given):
        raise ValueError(f"{name}: {len(node.args)} positional arguments, and {len(given)} parameters are known")
    arguments = {where: _literal(value, name) for where, value in zip(given, node.args, strict=False)}
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg in arguments:
            raise ValueError(f"{name}: ** or an argument twice, at column {keyword.value.col_offset}")
        arguments[keyword.arg] = _literal(keyword.value, name)
    return MadeCall(name, arguments)


def _literal(node: ast.expr, name: str) -> Any:
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (str, bool, int, float))):
        if isinstance(node.value, float) and not math.isfinite(node.value):
            raise ValueError(f"{name}: the number at column {node.col_offset} is too large; expected a finite number")
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_literal(item, name) for item in node.elts]
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        keys = [str(key.value) for key in node.keys if isinstance(key, ast.Constant)]
        return {key: _literal(value, name) for key, value in zip(keys, node.values, strict=True)}
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _literal(node.operand, name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -value if isinstance(node.op, ast.USub) else value
    raise ValueError(f"{name}: not a literal at column {node.col_offset}; expressions are not evaluated")


def _tagged(text: str, decoded: Decoded) -> str:
    """Read `<function=name>{…}`, and give the text without it."""
    rest, at = [], 0
    for match in _TAGGED.finditer(text):
        if match.start() < at:
            continue
        end = text.find("</function>", match.end())
        end = end if end >= 0 else len(text)
        faults = len(decoded.faults)
        value = _json(text[match.end() : end].strip() or "{}", match.end(), decoded)
        if isinstance(value, dict):
            decoded.calls.append(MadeCall(match[1], value))
        elif len(decoded.faults) == faults:
            _misfit(decoded, match[1], "no JSON object")
        rest.append(text[at : match.start()])
        at = end
    return "".join([*rest, text[at:]])


def _objects(text: str) -> Iterator[tuple[int, str]]:
    """The outermost `{…}` of a text whose braces are closed, with their places; quotes are heeded inside them.

    After several that are never closed the rest is not JSON.
    """
    at, tries = 0, 0
    # Each brace that is never closed costs a pass to the end of the text, hence only a few.
    while tries < _UNCLOSED and (start := text.find("{", at)) >= 0:
        end = _closing(text, start)
        if end < 0:
            tries, at = tries + 1, start + 1
            continue
        yield start, text[start : end + 1]
        at = end + 1


def _closing(text: str, start: int) -> int:
    depth = 0
    # The possessive `*+` never backtracks, so a text full of quotes takes linear time.
    for match in re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}]', re.DOTALL).finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if not depth:
                return match.start()
    return -1


def _json(piece: str, start: int, decoded: Decoded) -> Any:
    try:
        return _loads(piece)
    except (ValueError, RecursionError) as error:
        why = str(error)
    # The lenient reader is much slower, and a hostile text has thousands of pieces.
    if len(piece) <= _LONGEST_CALL and len(decoded.faults) < _TRIES:
        from concertino.text.json import ReadingError, read_json

        try:
            return read_json(piece).value
        except ReadingError as error:
            why = str(error)
    # Other broken objects are no calls, and would drown the faults that matter.
    if any(f'"{name}"' in piece[:2000] for name in (*_NAMES, *_ARGUMENTS)):
        decoded.faults.append(f"the JSON at character {start} cannot be read: {why[:160]}")
    return None


def _loads(text: str) -> Any:
    """A JSON value whose numbers are all finite: Python's reader also takes `NaN`, and `1e999` as infinity.

    Raises:
        ValueError: it is not JSON, or a number is not finite.
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def _made(value: Any, functions: Mapping[str, Sequence[str]], decoded: Decoded) -> Iterator[MadeCall]:
    """The calls that a JSON value says; what is none although it has a name and arguments is a fault."""
    if isinstance(value, list):
        for item in value[:_TRIES]:
            yield from _made(item, functions, decoded)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("tool_calls"), list):
        yield from _made(value["tool_calls"], functions, decoded)
        return
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if name is not None and arguments is not None:
        given = _given(arguments, name, decoded)
        if given is not None:
            yield MadeCall(name, given)
    elif name is None and value and all(key in functions and isinstance(args, dict) for key, args in value.items()):
        yield from (MadeCall(key, args) for key, args in value.items())


def _given(arguments: Any, name: str, decoded: Decoded) -> Mapping[str, Any] | None:
    """The arguments of a call; None, with a fault, where they are no object."""
    given = f"a value of the type {type(arguments).__name__}"
    # OpenAI's format holds the arguments as JSON text inside JSON.
    if isinstance(arguments, str):
        try:
            arguments = _loads(arguments or "{}")
        except (ValueError, RecursionError) as error:
            given = f"a text that is no JSON object ({str(error)[:80]})"
    if isinstance(arguments, dict):
        return arguments
    _misfit(decoded, name, given)
    return None


def _misfit(decoded: Decoded, name: str, given: str) -> None:
    if len(decoded.faults) < _FAULTS:
        decoded.faults.append(f"the arguments of {name[:80]} are {given}; expected an object")


def _python(text: str, functions: Mapping[str, Sequence[str]], decoded: Decoded) -> None:
    """Calls in Python's syntax: of known functions anywhere, of others where the whole text is a list or one call."""
    bare = re.sub(r"^```\w*\n?|```$", "", text.strip()).strip()
    # Prose is full of words before brackets; an unknown name is a call only where nothing else is said.
    listed = bare.startswith("[") or (_CALL.match(bare) is not None and bare.endswith(")") and "\n" not in bare)
    at, faults = 0, len(decoded.faults)
    for match in _CALL.finditer(text):
        if len(decoded.faults) - faults >= _FAULTS:
            return
        # A call inside the arguments of one that was read is not another one.
        if match.start(1) < at or not (listed or match[1] in functions):
            continue
        end = _closed(text, match.end())
        if end < 0:
            decoded.faults.append(f"the call of {match[1]} at character {match.start(1)} is not closed")
            continue
        try:
            decoded.calls.append(read_python_call(text[match.start(1) : end], functions))
            at = end
        except ValueError as error:
            decoded.faults.append(str(error))


def _closed(text: str, start: int) -> int:
    """Where a bracket that was opened before `start` is closed, heeding quotes; -1 if it is not, or not soon."""
    depth, quote = 1, ""
    for match in re.compile(r"\\.|[\"'()]", re.DOTALL).finditer(text, start, start + _LONGEST_CALL):
        token = match[0]
        if token in "\"'":
            quote = "" if quote == token else quote or token
        elif not quote and token in "()":
            depth += 1 if token == "(" else -1
            if not depth:
                return match.end()
    return -1
