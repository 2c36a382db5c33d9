"""Strict JSON, at nearly the speed of `json.loads`, without what JSON or Python lets slip.

`json.loads` accepts NaN, duplicate keys, 1e999 as infinity, lone surrogates and integers of any length, and
turns the LaTeX of `"\\frac"` into a form feed. One shared C scanner with hooks refuses the first three while
it reads; the rest are found by searches in C over the whole text, so a call of ordinary size costs about two
`json.loads`. A value that is returned is exactly the value of `json.loads`.

A hook knows no positions: a duplicate key or a bad number is reported at the last place that looks like it.
`read_json` asks the repairing reader for the exact place where the text is short enough.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from .errors import ReadingCode, ReadingError, refusal
from .limits import MAX_DEPTH, MAX_INTEGER_DIGITS, MAX_STRICT_CHARS
from .problems import duplicate_key, latex_escape, lone_surrogate, not_finite, nul, too_deep, too_many_digits

FINAL = frozenset({"latex-escape", "lone-surrogate", "nul", "too-deep", "too-large"})
"""Refusals that know their place and that no repair can lift."""
_BLANK = re.compile(r"[ \t\n\r]*+")
# Every digit is mapped to 0, so one search in C finds any run of digits that is too long.
_LONG_RUN = b"0" * (MAX_INTEGER_DIGITS + 1)
_DIGITS_AS_ZERO = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_SUSPECT_ESCAPE = re.compile(r"\\[bfu]")
# Runs over valid JSON and stops at the first escape that is refused: \b, \f, \u0000, half a surrogate pair.
_HARMLESS = re.compile(r'(?:[^\\]++|\\["\\/nrt]|\\u[dD][89abAB]..\\u[dD][c-fC-F]|\\u(?!0000|[dD][89a-fA-F]))*+')
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[{\]}]', re.DOTALL)


class _Found(Exception):
    """Raised by a hook inside the C scanner."""

    def __init__(self, code: ReadingCode, literal: str, problem: str) -> None:
        super().__init__(problem)
        self.code: ReadingCode = code
        self.literal = literal


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Found("duplicate-key", f'"{key}"', duplicate_key(key))
            seen.add(key)
    return result


def _float(literal: str) -> float:
    value = float(literal)
    # True of infinities and NaN alike, and cheaper than two calls.
    if value - value != 0.0:
        raise _Found("not-finite", literal, not_finite(literal))
    return value


def _int(literal: str) -> int:
    if len(literal.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise _Found("too-many-digits", literal, too_many_digits(literal))
    return int(literal)


def _constant(literal: str) -> NoReturn:
    raise _Found("not-finite", literal, not_finite(literal))


_decode = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant).raw_decode
# A hook triples the time of a list of integers: it is used only where the text holds a long run of digits.
_decode_long_integers = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_constant=_constant, parse_int=_int
).raw_decode


def read_strict(text: str) -> Any:
    """Return the value of strict JSON; raise `ReadingError` for anything else."""
    if len(text) > MAX_STRICT_CHARS:
        problem = f"the text has {len(text)} characters (at most {MAX_STRICT_CHARS}); send less at once."
        raise refusal("too-large", problem, text, MAX_STRICT_CHARS)
    try:
        # Encoding also finds lone surrogates that stand in the text unescaped.
        long_run = _LONG_RUN in text.encode().translate(_DIGITS_AS_ZERO)
        decode = _decode_long_integers if long_run else _decode
        value, end = decode(text, 0 if text[:1] == "{" else _skip(text, 0))
    except _Found as found:
        raise refusal(found.code, str(found), text, text.rfind(found.literal)) from None
    except UnicodeEncodeError as error:
        raise lone_surrogate(text, error.start) from None
    except json.JSONDecodeError as error:
        raise _not_json(text, error.msg, error.pos) from None
    except RecursionError:
        raise too_deep(text, _too_deep_at(text)) from None
    if end != len(text) and (end := _skip(text, end)) != len(text):
        raise _not_json(text, "text stands after the JSON value", end)
    # Cheapest search first: most calls hold no backslash, and of the rest most none of b, f and u.
    if "\\" in text and _SUSPECT_ESCAPE.search(text) and (escape := _harmless(text)) != len(text):
        raise _refused_escape(text, escape)
    # Fewer brackets than levels cannot nest too deep, which spares the walk.
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_too_deep(value):
        raise too_deep(text, _too_deep_at(text))
    return value


def _skip(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _harmless(text: str) -> int:
    run = _HARMLESS.match(text)
    return run.end() if run else 0


def _not_json(text: str, found: str, position: int) -> ReadingError:
    if not text.strip():
        return refusal("not-json", "the text is empty; write one JSON object.", text, 0)
    if position >= len(text.rstrip()) or found.startswith("Unterminated string"):
        problem = "the text ends before the JSON value is closed; write it again, complete."
        return refusal("truncated", problem, text, position)
    return refusal("not-json", f"not strict JSON: {found}; write JSON and nothing else.", text, position)


def _refused_escape(text: str, position: int) -> ReadingError:
    letter = text[position + 1]
    if letter != "u":
        return latex_escape(text, position, letter)
    return nul(text, position) if text.startswith("0000", position + 2) else lone_surrogate(text, position)


def _is_too_deep(value: Any) -> bool:
    # Level by level, because a recursion could overflow on exactly the values that it should refuse.
    level = [value]
    for _ in range(MAX_DEPTH):
        containers = [item for item in level if type(item) is dict or type(item) is list]
        if not containers:
            return False
        level = [inner for item in containers for inner in (item.values() if type(item) is dict else item)]
    return any(type(item) is dict or type(item) is list for item in level)


def _too_deep_at(text: str) -> int:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        token = match.group()
        depth += (token in "[{") - (token in "]}")
        if depth > MAX_DEPTH:
            return match.start()
    return 0
