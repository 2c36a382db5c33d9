"""Patterns of schemas: what is admitted, the text that the engines get, and short texts that match.

Patterns are ECMA 262. `Pattern.read` looks at one once, token by token. It refuses what no engine matches in linear
time (look-around, back-references) and counts the steps that its repetitions unfold to. It also writes the pattern in
the syntax of Rust's `regex` and of Python's `regex`: an ECMA character class is spelt out where one of them reads it
differently. Whether the rest of the syntax is right is the engine's judgement.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MAX_PATTERN_CHARS = 4000
MAX_PATTERN_NESTING = 40
MAX_PATTERN_STEPS = 1000
MAX_ALL_STEPS = 20_000  # of all patterns of one schema

_TOKEN = re.compile(
    r"\\(?:u\{(?P<code>[0-9A-Fa-f]{1,6})\}|u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})"
    r"|u(?P<unit>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})|c(?P<control>[A-Za-z])|[pP]\{[^}]*\}|(?P<escaped>.))"
    r"|(?P<look>\(\?<?[=!])|(?P<open>\((?:\?(?::|P?<[A-Za-z_]\w*>)|(?!\?)))|(?P<odd>\(\?)|(?P<empty>\[\^?\])"
    r"|(?P<count>\{(?P<least>\d{1,6})(?:,(?P<most>\d{0,6}))?\})|.",
    re.DOTALL,
)
_SPACE = "\\t-\\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_LINE_ENDS = "\\n\\r\u2028\u2029"
_ESCAPES = frozenset("dDwWsSbBtnvfr0")
# ECMA's classes are ASCII, and its blanks fixed; Rust and Python read all of Unicode into them.
_SETS = {"d": "0-9", "w": "A-Za-z0-9_", "s": _SPACE}
_SAMPLE_CHARS = "a1A0 -_.:/@," + "".join(map(chr, range(33, 127))) + "é\u03b1\u4e00"


class PatternRefused(ValueError):
    """`reason` is `pattern_syntax`, `pattern_not_linear`, `pattern_unsupported` or `pattern_too_large`."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True)
class Pattern:
    """An admitted pattern: as given, as Rust's and Python's engine get it, and how many steps it unfolds to."""

    given: str
    rust: str
    python: str
    steps: int

    @classmethod
    def read(cls, pattern: str) -> "Pattern":
        """Look at a pattern; raises `PatternRefused`."""
        if len(pattern) > MAX_PATTERN_CHARS:
            raise _unsupported(f"a pattern of {len(pattern)} characters; keep it below {MAX_PATTERN_CHARS}")
        reader = _Translator()
        written = [reader.read(token) for token in _TOKEN.finditer(pattern)]
        steps = reader.sizes[0][0]
        # Python's `$` also matches before a line break at the end; ECMA's does not.
        python = "".join(r"\Z" if text == "$" else text for text in written)
        return cls(pattern, "".join(written), python, steps)

    @cached_property
    def sample(self) -> str | None:
        """A short text that should match; None where none was found. The caller asks an engine whether it does."""
        try:
            # a category of Unicode stands for a letter here: Python's parser does not know it
            text = re.sub(r"\\[pP]\{[^}]*\}", "a", self.python)
            return "".join(_sampled(re._parser.parse(text)))  # type: ignore[attr-defined] # private, but stable
        except (re.error, StopIteration, RecursionError, OverflowError):
            return None


class _Translator:
    """Reads the tokens of a pattern: counts its steps and refuses what the engines must not get."""

    def __init__(self) -> None:
        self.sizes = [[0, 0]]  # of each open group: its steps so far, the steps of its last atom
        self.in_class = False
        self.members: list[str] = []  # tokens of the open class
        self.repeatable = False
        self.lazy = False  # a "?" here would make the quantifier before it lazy

    def read(self, token: re.Match[str]) -> str:
        """The token as Rust's engine gets it."""
        text = token[0]
        if self.in_class:
            self._check_range(token)
            self.in_class = not text.endswith("]") or token["escaped"] is not None
            return _in_class_text(token)
        if token["count"] or text in ("*", "+", "?"):
            self._repeat(token)
            return text
        self.lazy = False
        self.repeatable = True
        if token["look"] or token["odd"] or token["empty"] or token["escaped"]:
            _refuse(token)
        if token["open"]:
            self.repeatable = False
            self.sizes.append([0, 0])
            if len(self.sizes) > MAX_PATTERN_NESTING:
                raise _unsupported(f"groups nested beyond {MAX_PATTERN_NESTING} levels; simplify the pattern")
        elif text == ")":
            # A `)` too many is left to the engine, which says that better.
            inner = self.sizes.pop()[0] + 1 if len(self.sizes) > 1 else 1
            self._add(inner)
        elif text in ("|", "^", "$") or token["escaped"] in ("b", "B"):
            self.repeatable = False
        else:
            self.in_class = text == "["
            self.members = []
            self._add(1)
        return _text(token)

    def _check_range(self, token: re.Match[str]) -> None:
        """Refuse a range with a class at one end: the class is spelt out, and would become another range."""
        before = self.members
        if before[1:] and before[-1] == "-" and token[0] != "]" and _is_set(token[0]) | _is_set(before[-2]):
            hint = "a range in [...] that does not run from one character to another; write \\- for a hyphen"
            raise PatternRefused("pattern_syntax", hint)
        if before or token[0] != "^":
            before.append(token[0])

    def _add(self, steps: int) -> None:
        self.sizes[-1] = [self.sizes[-1][0] + steps, steps]
        if self.sizes[-1][0] > MAX_PATTERN_STEPS:
            hint = f"repeat counts that unfold to more than {MAX_PATTERN_STEPS} steps; use minLength or maxLength"
            raise PatternRefused("pattern_too_large", hint)

    def _repeat(self, token: re.Match[str]) -> None:
        if self.lazy and token[0] == "?":
            self.lazy = False
        elif not self.repeatable:
            hint = f"nothing to repeat before '{token[0]}'; write \\{token[0]} for the character itself"
            raise PatternRefused("pattern_syntax", hint)
        else:
            self.repeatable, self.lazy = False, True
            if token["count"]:
                last = self.sizes[-1][1]
                self._add(last * (max(int(token["least"]), int(token["most"] or 0), 1) - 1))


def _is_set(text: str) -> bool:
    """Whether a token inside a class stands for several characters."""
    return text[:1] == "\\" and text[1:2] in tuple("dDwWsSpP")


def _unsupported(message: str) -> PatternRefused:
    return PatternRefused("pattern_unsupported", message)


def _refuse(token: re.Match[str]) -> None:
    """Raise for a token that is not in the dialect; return for an escape that is."""
    escaped = token["escaped"]
    if token["look"]:
        hint = "look-around, which cannot be matched in linear time; state the allowed form directly"
        raise PatternRefused("pattern_not_linear", hint)
    if token["odd"]:
        raise _unsupported("a group that starts with '(?' and is not (?: or named; write flags out, as in [aA]")
    if token["empty"]:
        raise _unsupported("an empty class; write [\\s\\S] for any character")
    if escaped in tuple("123456789k"):
        hint = f"the back-reference {token[0]}, which cannot be matched in linear time; spell the text out"
        raise PatternRefused("pattern_not_linear", hint)
    if escaped in ("x", "u", "c", "p", "P"):
        raise PatternRefused("pattern_syntax", f"an incomplete escape \\{escaped}; write \\x41, \\u0041 or \\p{{L}}")
    if escaped.isascii() and escaped.isalnum() and escaped not in _ESCAPES:
        raise _unsupported(f"the escape \\{escaped}, which is not in ECMA 262; use ^ and $ for the ends")


def _text(token: re.Match[str]) -> str:
    """A token outside a class in the syntax that the engines share."""
    text, escaped = token[0], token["escaped"]
    if escaped and escaped in "dDwWsS":
        return f"[{'' if escaped.islower() else '^'}{_SETS[escaped.lower()]}]"
    if text == ".":
        return f"[^{_LINE_ENDS}]"
    # ECMA reads a lone bracket as itself; the engines may take `{` for a broken count.
    if text in ("{", "}", "]"):
        return "\\" + text
    if token["open"]:
        return text.replace("(?<", "(?P<")
    return _character(token)


def _in_class_text(token: re.Match[str]) -> str:
    text, escaped = token[0], token["escaped"]
    # `&&`, `~~` and a nested `[` are set operations to Rust; an escaped `$` also escapes the rewriting to `\Z`.
    if text in ("[", "&", "~", "$") or token["empty"]:
        return "\\" + text
    return r"\x08" if escaped == "b" else _SETS[escaped] if escaped in _SETS else _character(token)


def _character(token: re.Match[str]) -> str:
    """A token that may be a way to write one character."""
    if token["high"]:
        code = 0x10000 + ((int(token["high"], 16) - 0xD800) << 10) + int(token["low"], 16) - 0xDC00
    elif digits := token["code"] or token["unit"] or token["byte"]:
        code = int(digits, 16)
    elif token["control"]:
        code = ord(token["control"]) % 32
    elif token["escaped"] == "0":
        code = 0
    else:
        return token[0]
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise PatternRefused("pattern_syntax", f"the escape {token[0]}, which is not a character")
    # A sign written as an escape, such as `\u002a`, must not become an operator.
    return chr(code) if code > 255 or chr(code).isalnum() else f"\\x{code:02x}"


def _sampled(parsed: Any) -> list[str]:
    """The characters of a short match of what Python's own parser of patterns made."""
    made: list[str] = []
    for kind, value in parsed:
        match str(kind):
            case "LITERAL":
                made.append(chr(value))
            case "NOT_LITERAL":
                made.append(next(char for char in _SAMPLE_CHARS if char != chr(value)))
            case "IN":
                listed = map(chr, _lowest(value))
                made.append(next(char for char in [*_SAMPLE_CHARS, *listed] if _is_in(value, char)))
            case "ANY":
                made.append("a")
            case "BRANCH":
                made += _sampled(value[1][0])
            case "SUBPATTERN":
                made += _sampled(value[3])
            case "MAX_REPEAT" | "MIN_REPEAT":
                made += _sampled(value[2]) * min(int(value[0]), MAX_PATTERN_STEPS)
    return made


def _lowest(members: list[Any]) -> list[int]:
    return [value if type(value) is int else value[0] for kind, value in members if str(kind) in ("LITERAL", "RANGE")]


def _is_in(members: list[Any], char: str) -> bool:
    found = negated = False
    for kind, value in members:
        match str(kind):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found |= ord(char) == value
            case "RANGE":
                found |= value[0] <= ord(char) <= value[1]
            case "CATEGORY":
                _, _, name = str(value).rpartition("_")
                word = char == "_" or (char.isascii() and char.isalnum())
                holds = {"DIGIT": char in "0123456789", "WORD": word, "SPACE": char.isspace()}[name]
                found |= holds is not ("NOT" in str(value))
    return found is not negated
