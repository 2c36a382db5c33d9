"""How BFCL's published handlers read calls out of what a model said: one dialect per way of writing.

A published score rests on the handler of the model as much as on the checker: a fence that one handler drops is a wrong
answer for another. So each dialect here takes what its handler takes, and nothing else. `DIALECTS` has them by name;
"auto" picks one by the shape of the text.

The invariants: a reader gives the calls as data, or raises ValueError; no text is executed, only numbers and texts that
stand in an expression (`2*3`) are worked out, up to a size.
"""

from __future__ import annotations

import ast
import json
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from .base import written
from .bfcl_source import read_source_call

# Characters of a text that is read at all.
_LONGEST = 400_000
# Digits of a number and characters of a text that an expression may come to.
_LARGEST = 4_000
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}

Reader = Callable[[str, str], list[Any]]
"""Reads a text in a language ("python", "java", "javascript"): calls as `{name: arguments}`, and what is no call."""


def read_dialect(output: Any, dialect: str, language: str) -> list[dict[Any, dict[Any, Any]]]:
    """The calls of an output, read as the published handlers read it.

    Args:
        output: a text, or the calls of a model with native calls: `[{name: arguments}]`, the arguments as JSON text.
        dialect: one of `DIALECTS`, or "auto".
        language: "python", "java" or "javascript".

    Raises:
        ValueError: it does not have the form of the dialect, or the dialect is unknown.
    """
    if dialect != "auto" and dialect not in DIALECTS:
        raise ValueError(f"the dialect {dialect!r} is unknown; expected auto, {', '.join(DIALECTS)}")
    text = output if isinstance(output, str) else written(output, json.dumps)
    if len(text) > _LONGEST:
        raise ValueError(f"{len(text):,} characters; at most {_LONGEST:,} are read")
    try:
        with warnings.catch_warnings():
            # Parsing warns about escapes such as "\d" in a model's text.
            warnings.simplefilter("ignore")
            calls = DIALECTS[_shape(text) if dialect == "auto" else dialect](text, language)
    except SyntaxError as error:
        raise ValueError(f"not Python: {error.msg}, in line {error.lineno}") from None
    except (RecursionError, MemoryError, OverflowError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not read: {str(error)[:160] or type(error).__name__}") from None
    for call in calls:
        if not isinstance(call, dict) or len(call) != 1 or not isinstance(next(iter(call.values())), dict):
            raise ValueError(f"not a call: {written(call)[:80]}")
    return calls


def _shape(text: str) -> str:
    """The dialect that a text looks like."""
    bare = text.strip()
    if bare.startswith("[{") and isinstance(found := _json(bare), list):
        named = all(isinstance(each, dict) and len(each) == 1 for each in found)
        return "native" if named and found else "prompted"
    for sign, dialect in (("<tool_call>", "hermes"), ("<function_call>", "granite"), ('{"tool_calls"', "xlam")):
        if sign in bare:
            return dialect
    return "glm" if re.match(r"[\w.\-]{1,200}\n\{", bare) else "prompted"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# -- calls as JSON -----------------------------------------------------------------------------------------------------


def _native(text: str, language: str) -> list[Any]:
    calls = []
    for call in json.loads(text):
        name, arguments = next(iter(call.items()))
        calls.append({name: json.loads(arguments) if isinstance(arguments, str) else arguments})
    return calls


def _hermes(text: str, language: str) -> list[Any]:
    """The line behind each line `<tool_call>`; its single quotes count as double ones."""
    calls: list[Any] = []
    opened = False
    for line in text.split("\n"):
        if opened and line not in ("<tool_call>", "</tool_call>"):
            calls.append(_named(json.loads(line.replace("'", '"')), language))
        opened = line == "<tool_call>"
    return calls


def _qwen(text: str, language: str) -> list[Any]:
    """What stands between tags that have lines of their own."""
    calls, at = [], 0
    # Not a regular expression: it would look for the end anew from each tag that is never closed.
    while (start := text.find("<tool_call>\n", at)) >= 0 and (end := text.find("\n</tool_call>", start + 12)) >= 0:
        calls.append(_named(json.loads(text[start + 12 : end]), "python"))
        at = end
    return calls


def _granite(text: str, language: str) -> list[Any]:
    """JSON behind each `<function_call>`; a piece that is no JSON is no call."""
    calls: list[Any] = []
    for piece in filter(None, map(str.strip, text.split("<function_call>"))):
        value = _json(piece)
        name = value.get("name", "").strip() if isinstance(value, dict) else "no_function"
        calls.append(piece if name == "no_function" else {name: value.get("arguments", {})})
    return calls


def _glm(text: str, language: str) -> list[Any]:
    """A name on the first line, its arguments as JSON on the second; further lines are not read."""
    lines = text.split("\n")
    return [lines[0]] if len(lines) == 1 else [{lines[0]: json.loads(lines[1])}]


def _xlam(text: str, language: str) -> list[Any]:
    """`{"tool_calls": […]}`, or the list alone."""
    value = json.loads(text)
    found = value if isinstance(value, list) else value.get("tool_calls", [])
    return [{call.get("name", ""): call.get("arguments", {})} for call in found if isinstance(call, dict)]


def _named(value: Any, language: str) -> dict[str, Any]:
    arguments = value["arguments"]
    if language != "python":
        arguments = {name: str(item) for name, item in arguments.items()}
    return {value["name"]: arguments}


# -- calls as source ---------------------------------------------------------------------------------------------------


def _listed(text: str, language: str, *, empty: bool = False) -> list[Any]:
    """A list of calls, and nothing else.

    In August 2024 a call without named arguments was none; `empty` takes it.
    """
    if language != "python":
        # The brackets of the list are cut off unseen.
        return list(read_source_call(text[1:-1], language))
    body = ast.parse(text, mode="eval").body
    if not isinstance(body, (ast.List, ast.Tuple, ast.Set)):
        raise ValueError(f"a {type(body).__name__}, expected a list of calls")
    calls = [_call(each) for each in body.elts]
    if not empty and not all(next(iter(call.values())) for call in calls):
        raise ValueError("a call without a named argument")
    return calls


def _bracketed(text: str, language: str, *, empty: bool = False) -> list[Any]:
    text = text if text.startswith("[") else f"[{text}"
    return _listed(text if text.endswith("]") else f"{text}]", language, empty=empty)


def _prompted(text: str, language: str) -> list[Any]:
    """Backticks, line ends and blanks around the text are dropped, brackets are added: the handlers of BFCL v4."""
    return _bracketed(text.strip("`\n "), language, empty=True)


def _unquoted(text: str, language: str) -> list[Any]:
    """On one line, and without quotes around each call."""
    text = text.replace("\n", "")
    text = text if text.startswith("[") else f"[ {text}"
    text = text if text.endswith("]") else f"{text} ]"
    if text.startswith("['"):
        text = text.replace("['", "[").replace("', '", ", ").replace("','", ", ")
    return _listed(text.replace("']", "]") if text.endswith("']") else text, language)


def _databricks(text: str, language: str) -> list[Any]:
    """Without single quotes anywhere; as it stands where that cannot be read."""
    bare = re.sub(r"'([^']*)'", r"\1", text).replace("\n    ", "")
    bare = bare if bare.startswith("[") else f"[{bare}"
    bare = bare if bare.endswith("]") else f"{bare}]"
    try:
        return _listed(bare.replace("['", "[") if bare.startswith("['") else bare, language)
    except (SyntaxError, ValueError, TypeError):
        return _listed(text, language)


def _outermost(text: str, language: str) -> list[Any]:
    """From the first `[` to the last `]`."""
    start, end = text.find("["), text.rfind("]")
    if not 0 <= start < end:
        raise ValueError("no list")
    return _listed(text[start : end + 1], language)


def _fenced(text: str, language: str) -> list[Any]:
    """From the first `[` of the first fence to the next `]`."""
    inside = text.split("```")[1]
    start = inside.index("[")
    return _listed(inside[start : inside.index("]", start) + 1], language)


def _semicolons(text: str, language: str) -> list[Any]:
    if "out_of_domain" in text:
        raise ValueError("it says that no function fits")
    return _listed(f"[{text.removesuffix(';').replace(';', ',')}]", language)


def _call(node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Call):
        raise ValueError(f"a {type(node).__name__}, expected a call, at column {node.col_offset}")
    parts: list[str] = []
    function = node.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.append(function.id)
    # Arguments without a name are passed over.
    return {".".join(reversed(parts)): {each.arg: _value(each.value) for each in node.keywords}}


def _value(node: ast.expr | None) -> Any:
    match node:
        case ast.Constant(value=value):
            return "..." if value is ... else value
        case ast.UnaryOp(operand=ast.Constant() as held):
            # Whatever the sign is: the published reader does the same with `+5` and `not True`.
            given: Any = held.value
            return -given
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.Dict(keys=keys, values=values):
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case ast.BinOp():
            return _worked_out(node)
        case ast.Name(id=name):
            # A bare word stands for a variable of the task.
            return name
        case ast.Call(keywords=[]) | ast.Subscript():
            return ast.unparse(node)
        case ast.Call():
            return _call(node)
    raise ValueError(f"a {type(node).__name__} is not read" + (f", at column {node.col_offset}" if node else ""))


def _worked_out(node: ast.expr) -> Any:
    """The value of an expression of literals."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _worked_out(left), _worked_out(right)
            if _size(op, one, other) > _LARGEST:
                raise ValueError("the expression comes to too large a value")
            try:
                return _OPERATORS[type(op)](one, other)
            except ArithmeticError as error:
                raise ValueError(f"the expression has no value: {error}") from None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_worked_out(operand)
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items):
            return [_worked_out(item) for item in items]
    raise ValueError(f"a {type(node).__name__} in an expression is not worked out")


def _size(op: ast.operator, one: Any, other: Any) -> float:
    """Digits, signs or items that the result has at most."""
    sizes = [len(each) if isinstance(each, (str, list)) else len(f"{each:.0f}") for each in (one, other)]
    if isinstance(op, ast.Pow):
        return float(sizes[0] * max(abs(other), 1.0))
    if isinstance(op, ast.Mult) and not isinstance(one, float) and not isinstance(other, float):
        counts = [each for each in (one, other) if isinstance(each, int)]
        return sizes[0] + sizes[1] if len(counts) == 2 else max(sizes) * max(*counts, 0)
    return sizes[0] + sizes[1]


DIALECTS: Mapping[str, Reader] = {
    "native": _native,
    "prompted": _prompted,
    "python": _listed,
    "brackets": lambda text, language: _bracketed(text.removeprefix(" "), language),
    "escaped": lambda text, language: _bracketed(text.replace("\\_", "_"), language),
    "one-line": lambda text, language: _bracketed(text.replace("\n", ""), language),
    "added-brackets": lambda text, language: _listed(f"[{text}]", language),
    "unquoted": _unquoted,
    "outermost": _outermost,
    "fenced": _fenced,
    "semicolons": _semicolons,
    "databricks": _databricks,
    "hermes": _hermes,
    "qwen": _qwen,
    "granite": _granite,
    "glm": _glm,
    "xlam": _xlam,
}
"""The readers by name."""
# Models with these are given names with `_` for `.`, but for some; all others see the names as they are.
_FREE_NAMES = frozenset(("auto", "native", "hermes", "qwen", "granite", "glm", "xlam"))


def underscored(dialect: str) -> bool | None:
    """Whether names are written with `_` for `.`, for `bfcl_rules.fault`; None where both are taken."""
    return None if dialect in _FREE_NAMES else False


# A part of a model's name, and the dialect of its handler in August 2024; the first that occurs counts.
_FAMILIES = (
    ("raven", "semicolons"),
    ("hermes", "hermes"),
    ("xlam", "xlam"),
    ("glm-4", "glm"),
    ("granite-20b", "granite"),
    ("-fc", "native"),
    ("functionary", "native"),
    ("gemini-1", "native"),
    ("claude", "brackets"),
    ("command-r", "brackets"),
    ("dbrx", "databricks"),
    ("deepseek-coder", "fenced"),
    ("gemma-7b", "outermost"),
    ("gorilla-openfunctions", "added-brackets"),
    ("gpt-", "python"),
    ("llama-3-", "one-line"),
    ("mistral", "escaped"),
    ("mixtral", "escaped"),
    ("nemotron", "unquoted"),
    ("arctic", "unquoted"),
)


def dialect_of(model: str) -> str:
    """The dialect in which a model's outputs were scored in August 2024; "auto" for a model that is not of then.

    BFCL v4 reads all models that are asked in words as "prompted", which is what "auto" takes for plain text.

    Args:
        model: its name as BFCL writes it, such as "gpt-4-0613-FC" or "google_gemma-7b-it".
    """
    name = model.lower()
    return next((dialect for part, dialect in _FAMILIES if part in name), "auto")
