"""Java and JavaScript as BFCL's published checker reads them: one call, and values from the text of their source.

A model writes every argument as a text of that language; `source_value` turns it into data by the parameter's type, and
what does not have the form of that type stays a text. The invariants: nothing is run, and the time grows with the
length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_WHOLE = re.compile(r"-?\d+\n?")
_JAVA_FORMS: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    **dict.fromkeys(("byte", "short", "integer"), (_WHOLE, int)),
    "long": (re.compile(r"-?\d+[lL]\n?"), lambda text: int(text.strip()[:-1])),
    "float": (re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?[fF]\n?"), lambda text: float(text.strip()[:-1])),
    "double": (re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\n?"), float),
    "boolean": (re.compile(r"true|false"), lambda text: text == "true"),
}
_SCRIPT_FORMS: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    "integer": (_WHOLE, int),
    "float": (re.compile(r"-?\d+(?:\.\d+)?\n?"), float),
    "Bigint": (re.compile(r"-?\d+n\n?"), lambda text: int(text.strip()[:-1])),
    "Boolean": (re.compile(r"true|false"), lambda text: text == "true"),
}
_AS_LIST = re.compile(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)")
_ADDED = re.compile(r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*(.+?)\s*\}\}", re.DOTALL)
_NO_LIST = re.compile(r"new\s+ArrayList<\w*>\(\)")
_ARRAY = re.compile(r"new\s+\w+\[\]\s*\{(.*?)\}")
_MAP = re.compile(r"new\s+HashMap<.*?>\s*\(\)(?:\s*\{\s*\{?\s*(.*?)\s*\}?\s*\})?", re.DOTALL)
_PUT = re.compile(r'put\("(.*?)",\s*(.*?)\)')
_ROWS = re.compile(r"(?:\[|new\s+Array\()\s*\[")
_ROW = re.compile(r"\[([^\]\n]*)\]")
_FLAT = re.compile(r"\[(.*?)\]|new\s+Array\((.*?)\)")
# Characters of a value that is looked into; a longer one stays a text. It bounds searches that begin at every sign.
_LONGEST_VALUE = 20_000
# A number of more digits cannot be read at all; Python refuses it.
_LONGEST_NUMBER = 4000
_NAME = re.compile(r"\s*((?:new\s+)?[A-Za-z_$][\w$]*(?:\s*\.\s*[A-Za-z_$][\w$]*)*)\s*\(")
_NAMED = re.compile(r"([A-Za-z_$][\w$]*)\s*=(?![=>])")
_QUOTED = r'"(?:[^"\\\n]|\\.)*+"|\'(?:[^\'\\\n]|\\.)*+\'|`(?:[^`\\]|\\.)*+`'
# The types between the brackets of `new HashMap<String, Integer>`: their commas part no arguments.
_GENERIC = r"new\s+[\w.]+\s*<[\w\s.,<>?]{0,200}>"
_TOKEN = re.compile(rf"{_QUOTED}|{_GENERIC}|[\"'`]|[()\[\]{{}},]|->|=>", re.DOTALL)

_PIECE = re.compile(
    rf"(?P<word>{_QUOTED}|\d\w*(?:\.\w*)?|\.\d\w*|{_GENERIC}|[A-Za-z_$][\w$]*)|::|->|=>|\+\+|--|\S", re.DOTALL
)
_REGULAR = re.compile(r"^/(?:[^/\\\n]|\\.)+/[a-z]*")
_KEYWORDS = frozenset(["new", "instanceof", "typeof", "in", "of", "void", "await", "async", "function"])
_NEVER = frozenset("@#\\")


def source_value(text: str, kind: str, inner: str, language: str) -> Any:
    """The value of a text of Java or JavaScript.

    Args:
        text: the source.
        kind: the parameter's type in BFCL's dialect; `inner` that of its items, empty where it says none.
        language: "java" or "javascript".

    Returns:
        The value; the text itself where it does not have the form of the type.
    """
    if len(text) > _LONGEST_VALUE:
        return _unquoted(text) if kind == "String" and language != "java" else text
    return _java(text, kind, inner) if language == "java" else _script(text, kind, inner)


def read_source_call(text: str, language: str) -> list[dict[str, dict[Any, str]]]:
    """The one call of a text, its arguments as source: `[{name: {argument: text}}]`; empty without one.

    Raises:
        ValueError: the text is not a call with its brackets and quotes closed.
    """
    match = _NAME.match(text)
    if match is None:
        if text.strip():
            raise ValueError(f"not a call: {text.strip()[:80]!r}")
        return []
    parts, end = _parts(text, match.end())
    if text[end:].strip(" \t\n;"):
        raise ValueError(f"more than one call, at character {end}: {text[end : end + 60]!r}")
    arguments: dict[Any, str] = {}
    for part in map(str.strip, parts):
        named = _NAMED.match(part)
        # A bare word is an argument without a name, which no function has; other literals are passed over.
        name = named[1] if named else None
        if named is None and not re.fullmatch(r"[A-Za-z_$][\w$]*", part):
            continue
        if name in arguments:
            raise ValueError(f"two values for {name or 'an argument without a name'}")
        value = part[named.end() :].strip() if named else part
        if not value:
            raise ValueError(f"{name} has no value")
        # A regular expression of JavaScript is a value like a word, whatever it holds.
        _see_expression(value if language == "java" else _REGULAR.sub("x ", value))
        arguments[name] = _java_text(value) if language == "java" else _unquoted(value)
    return [{re.sub(r"\s+", "", match[1]): arguments}]


def _parts(text: str, start: int) -> tuple[list[str], int]:
    """The arguments from behind an opened bracket to its end, and where that is."""
    depth, parts, begun = [")"], [], start
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token in "\"'`":
            raise ValueError(f"a quote is not closed, at character {match.start()}")
        if token in "([{":
            depth.append({"(": ")", "[": "]", "{": "}"}[token])
        elif token in ")]}":
            if token != depth.pop():
                raise ValueError(f"{token!r} closes what it did not open, at character {match.start()}")
            if not depth:
                parts.append(text[begun : match.start()])
                return ([] if len(parts) == 1 and not parts[0].strip() else parts), match.end()
        elif token == "," and len(depth) == 1:
            parts.append(text[begun : match.start()])
            begun = match.end()
    raise ValueError("the bracket of the call is not closed")


def _see_expression(value: str) -> None:
    """See that a value is no prose: signs stand between words and numbers, and none at the end.

    Raises:
        ValueError: it is prose, a path, an address; says where.
    """
    after, depth = False, 0
    if re.search(r"(?<!:):(?!:)", re.sub(_QUOTED, "", value).partition("{")[0]) and "?" not in value:
        raise ValueError(f"':' is not expected in {value[:80]!r}")
    for match in _PIECE.finditer(value):
        piece, word = match[0], bool(match["word"])
        if piece in "{}":
            depth += 1 if piece == "{" else -1
        # A body in braces has statements, types and labels: it is not looked at.
        elif not depth and (piece in _NEVER or (word and after) or (piece in "*/%=<>&|:.?" and not after)):
            raise ValueError(f"{piece!r} is not expected at character {match.start()} of {value[:80]!r}")
        after = piece in ")]}" or (word and piece not in _KEYWORDS)
    if value and not after:
        raise ValueError(f"{value[-80:]!r} breaks off")


# -- Java --------------------------------------------------------------------------------------------------------------


def _java(text: str, kind: str, inner: str) -> Any:
    if kind in _JAVA_FORMS:
        return _formed(text, *_JAVA_FORMS[kind])
    if kind == "ArrayList":
        return _java_list(text, inner)
    if kind == "Array":
        match = _ARRAY.search(text)
        parts = [part.strip() for part in match[1].split(",") if part.strip()] if match else []
        return [_java(part, inner, "") if inner else _java_guess(part) for part in parts] if match else text
    if kind == "HashMap":
        found = _MAP.search(text)
        return {key: _java_guess(value.strip()) for key, value in _PUT.findall(found[1] or "")} if found else text
    return text


def _java_list(text: str, inner: str) -> Any:
    if match := _AS_LIST.search(text):
        parts = match[1].split(",")
    elif match := _ADDED.search(text):
        parts = re.findall(r"add\((.+?)\)", match[1])
    else:
        return [] if _NO_LIST.search(text) else text
    items = [part.strip() for part in parts]
    if inner in ("char", "String"):
        # Without a look at the quotes: a bare word loses its first and last letter there too.
        return [item[1:-1] for item in items]
    return [_java(item, inner, "") if inner else _java_guess(item) for item in items]


def _java_guess(text: str) -> Any:
    """A value whose type nothing says."""
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    for kind in ("long", "float"):
        form, make = _JAVA_FORMS[kind]
        if form.fullmatch(text):
            return _formed(text, form, make)
    return _number(text)


def _java_text(value: str) -> str:
    """A value's source as the published reader hands it on: quotes and blanks between signs are dropped."""
    if re.fullmatch(_QUOTED, value) and value[0] != "`":
        return value[1:-1]
    if not value.startswith("new ") or len(value) > _LONGEST_VALUE:
        return value if _NAME.match(value) or re.fullmatch(r"[\w.$]+", value) else _squeezed(value)
    if array := re.fullmatch(r"new\s+([\w.<>]+)\s*(?:\[\s*\]\s*)+(\{.*\})", value, re.DOTALL):
        return f"new {array[1]}[]{_squeezed(array[2])}"
    head = re.match(r"new\s+([^(]*)\(", value)
    if head is None:
        return _squeezed(value)
    # The body of an anonymous class is not handed on: a map that is filled there comes out empty.
    parts = [part.strip() for part in _parts(value, head.end())[0]]
    inside = ", ".join(_java_text(part) if part.startswith("new ") else part for part in parts)
    return f"new {_squeezed(head[1])}({inside})"


def _squeezed(text: str) -> str:
    return re.sub(rf"({_QUOTED})|\s+", lambda match: match[1] or "", text)


# -- JavaScript --------------------------------------------------------------------------------------------------------


def _script(text: str, kind: str, inner: str) -> Any:
    if kind in _SCRIPT_FORMS:
        return _formed(text, *_SCRIPT_FORMS[kind])
    if kind == "String":
        return _unquoted(text)
    if kind == "dict":
        return _script_object(text.strip())
    return _script_list(text.strip(), inner) if kind == "array" else text


def _script_list(text: str, inner: str) -> Any:
    if _ROWS.match(text) and (rows := _ROW.findall(text[1:] if text.startswith("[") else text)):
        return [[_script_guess(part) for part in row.split(",")] for row in rows]
    match = _FLAT.match(text)
    if match is None:
        return text
    said = (match[1] if match[1] is not None else match[2]).strip()
    parts = [part.strip() for part in said.split(",")] if said else []
    if not inner:
        return [_script_guess(part) for part in parts]
    known = {*_SCRIPT_FORMS, "String", "dict", "array", "any"}
    return [_script(part, inner, "") for part in parts] if inner in known or not parts else text


def _script_object(text: str) -> Any:
    match = re.match(r"\{(.*?)\}", text)
    if match is None:
        return text
    pairs: list[list[str]] = []
    for piece in match[1].split(","):
        name, colon, value = piece.partition(":")
        # A comma inside a value: what follows has no name of its own.
        if colon and name:
            pairs.append([name.strip().strip("'\""), value])
        elif pairs:
            pairs[-1][1] += f",{piece}"
    return {name: _script_item(value.strip()) for name, value in pairs}


def _script_item(value: str) -> Any:
    if value.startswith("[") and value.endswith("]"):
        return _script_list(value, "")
    return _script_guess(value.strip("'\""))


def _script_guess(text: str) -> Any:
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    bare = _unquoted(text)
    return _number(text) if bare == text else bare


def _unquoted(text: str) -> str:
    quoted = any(text.startswith(quote) and text.endswith(quote) for quote in "\"'")
    return text[1:-1] if quoted else text


def _formed(text: str, form: re.Pattern[str], make: Callable[[str], Any]) -> Any:
    return make(text) if len(text) <= _LONGEST_NUMBER and form.fullmatch(text) else text


def _number(text: str) -> Any:
    for make in (int, float):
        try:
            return make(text)
        except ValueError:
            continue
    return text
