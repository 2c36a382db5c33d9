"""The tokens of almost-JSON: blanks, comments, strings, escapes, numbers and words.

A token is read at a position of the text and answers with its value and the position behind it, so every
refusal knows its place. What strict JSON does not allow but has one meaning is read and its *repair* noted
by name. A backslash is the delicate part: `\\d` can only be a backslash and a d, but in a string whose writer
does not double backslashes, `\\\\` and `\\name` have become doubtful too, and are refused.
"""

from __future__ import annotations

import re
from typing import Literal, NoReturn, get_args

from .errors import ReadingCode, quoted, refusal
from .latex import COMMAND_IN_SOURCE
from .limits import MAX_INTEGER_DIGITS
from .problems import latex_escape, lone_surrogate, not_finite, nul, too_many_digits

Repair = Literal[
    "invisible-characters",
    "code-fence",
    "tag",
    "think-block",
    "prose",
    "double-encoded",
    "comment",
    "single-quotes",
    "curly-quotes",
    "bare-key",
    "python-literal",
    "raw-control-characters",
    "stray-backslash",
    "missing-comma",
    "trailing-comma",
]
REPAIRS: tuple[Repair, ...] = get_args(Repair)
"""Every name a `JsonReading.repairs` can hold, in the order in which it holds them."""

INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060\u00a0"
CLOSING_QUOTE = {'"': '"', "'": "'", "“": "”"}

_BLANK = re.compile(r"[ \t\n\r]*+")
_PLAIN = {
    '"': re.compile(r'[^"\\\x00-\x1f]*+'),
    "'": re.compile(r"[^'\\\x00-\x1f]*+"),
    "“": re.compile(r"[^”\\\x00-\x1f]*+"),
}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "'": "'", "n": "\n", "r": "\r", "t": "\t"}
_HEX4 = re.compile(r"u([0-9a-fA-F]{4})")
# Read by Python or JavaScript as a character, by regular expressions, LaTeX or Markdown as something else.
_DOUBTFUL_ESCAPE = re.compile(r"_|0|x[0-9a-fA-F]{2}|u[0-9a-fA-F]|U[0-9a-fA-F]{4}|[\x00-\x1f]")
_CUT_UNICODE = re.compile(r"u[0-9a-fA-F]{0,3}\Z")
_STRAY_BEFORE_WORD = re.compile(r"\\(?:[A-Zac-eg-mo-qsv-z1-9]|u(?![0-9a-fA-F]))")
_LAYOUT_BEFORE_WORD = re.compile(r"\\[nrt][A-Za-z0-9]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?(?![\w.])")
_NOT_FINITE = re.compile(r"[+-]?(?:NaN|nan|Infinity|infinity|Inf|inf)\b")
_WORD = re.compile(r"[^\W\d]\w*+")
_LITERALS = {"true": True, "false": False, "null": None}
_PYTHON_LITERALS = {"True": True, "False": False, "None": None}
_NUMBER_LIKE = re.compile(r"[\w.+-]*+")
_CUT_LITERAL = re.compile(r"(?:t(?:ru?)?|f(?:al?s?)?|n(?:ul?)?|T(?:ru?)?|F(?:al?s?)?|No?n?)\Z")


class TokenReader:
    """Reads single tokens of one text and collects the names of the repairs made."""

    __slots__ = ("repairs", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.repairs: set[Repair] = set()

    def refuse(self, problem: str, position: int, code: ReadingCode = "not-json") -> NoReturn:
        raise refusal(code, problem, self.text, position)

    def refuse_end(self, what: str, opened_at: int) -> NoReturn:
        problem = f"the {what} opened here is not closed when the text ends; write it again, complete."
        self.refuse(problem, opened_at, "truncated")

    def skip(self, position: int) -> int:
        """The position of the next token behind blanks, invisible characters and comments."""
        text = self.text
        while True:
            blank = _BLANK.match(text, position)
            position = blank.end() if blank else position
            char = text[position : position + 1]
            if char == "#" or (char == "/" and text.startswith("//", position)):
                end = text.find("\n", position)
                position = len(text) if end < 0 else end
                self.repairs.add("comment")
            elif char == "/" and text.startswith("/*", position):
                end = text.find("*/", position + 2)
                if end < 0:
                    self.refuse_end("comment", position)
                position = end + 2
                self.repairs.add("comment")
            elif char and char in INVISIBLE:
                position += 1
                self.repairs.add("invisible-characters")
            else:
                return position

    def string(self, start: int) -> tuple[str, int]:
        """Read the string whose opening quote stands at `start`."""
        text, quote = self.text, self.text[start]
        plain, closing = _PLAIN[quote], CLOSING_QUOTE[quote]
        if quote != '"':
            self.repairs.add("single-quotes" if quote == "'" else "curly-quotes")
        parts: list[str] = []
        first_stray, has_pair = -1, False
        position = start + 1
        while True:
            run = plain.match(text, position)
            if run:
                parts.append(run.group())
                position = run.end()
            char = text[position : position + 1]
            if char == closing:
                break
            if char == "\\":
                piece, behind = self._escape(position, start)
                if behind == position + 1 and first_stray < 0:
                    first_stray = position
                has_pair = has_pair or text.startswith("\\\\", position)
            elif char:
                piece, behind = self._control(position), position + 1
            else:
                self.refuse_end("string", start)
            parts.append(piece)
            position = behind
        # Only now is it known whether the writer doubles backslashes: earlier escapes of the string are judged by it.
        if first_stray >= 0:
            self._check_strays(start, position, first_stray, has_pair)
        return "".join(parts), position + 1

    def _escape(self, position: int, start: int) -> tuple[str, int]:
        """Read the escape at `position`; a stray backslash is returned alone, one character long."""
        text = self.text
        char = text[position + 1 : position + 2]
        if char in _ESCAPES:
            if char == "'" and text[start] != "'":
                self.repairs.add("stray-backslash")
            return _ESCAPES[char], position + 2
        if char == "b" or char == "f":
            raise latex_escape(text, position, char)
        if code_unit := _HEX4.match(text, position + 1):
            return self._unicode(position, int(code_unit[1], 16))
        if not char or _CUT_UNICODE.match(text, position + 1):
            self.refuse_end("string", start)
        if _DOUBTFUL_ESCAPE.match(text, position + 1):
            shown = quoted(text[position : position + 2])
            problem = f"{shown} is not a JSON escape and could mean two things; double its backslash or drop it."
            self.refuse(problem, position, "ambiguous-escape")
        self.repairs.add("stray-backslash")
        return "\\", position + 1

    def _unicode(self, position: int, unit: int) -> tuple[str, int]:
        text = self.text
        if unit == 0:
            raise nul(text, position)
        if not 0xD800 <= unit <= 0xDFFF:
            return chr(unit), position + 6
        low = _HEX4.match(text, position + 7) if text.startswith("\\", position + 6) else None
        low_unit = int(low[1], 16) if low else 0
        if unit > 0xDBFF or not 0xDC00 <= low_unit <= 0xDFFF:
            raise lone_surrogate(text, position)
        return chr(0x10000 + ((unit - 0xD800) << 10) + (low_unit - 0xDC00)), position + 12

    def _control(self, position: int) -> str:
        char = self.text[position]
        if char == "\x00":
            raise nul(self.text, position)
        if char in "\b\f":
            raise latex_escape(self.text, position, "b" if char == "\b" else "f")
        self.repairs.add("raw-control-characters")
        return char

    def _check_strays(self, start: int, end: int, first_stray: int, has_pair: bool) -> None:
        """Refuse a string with a stray backslash whose other escapes have become doubtful."""
        source = self.text[start:end]
        if has_pair:
            problem = "this string has single and doubled backslashes; double every one that is meant."
            self.refuse(problem, first_stray, "ambiguous-escape")
        if hidden := COMMAND_IN_SOURCE.search(source):
            raise latex_escape(self.text, start + hidden.start(), hidden.group()[1])
        for run in source.split():
            # In C:\Users\name the second backslash is as stray as the first, though \n is legal.
            if _LAYOUT_BEFORE_WORD.search(run) and _STRAY_BEFORE_WORD.search(run):
                problem = f"{quoted(run)} mixes escapes with plain backslashes; double every backslash."
                self.refuse(problem, first_stray, "ambiguous-escape")

    def number(self, start: int) -> tuple[int | float, int]:
        """Read the number at `start`."""
        text = self.text
        self.refuse_not_finite(start)
        match = _NUMBER.match(text, start)
        if match is None:
            self._refuse_number(start)
        literal = match.group()
        if match[1] is None and match[2] is None:
            if len(literal.lstrip("-")) > MAX_INTEGER_DIGITS:
                self.refuse(too_many_digits(literal), start, "too-many-digits")
            return int(literal), match.end()
        value = float(literal)
        if value - value != 0.0:
            self.refuse(not_finite(literal), start, "not-finite")
        return value, match.end()

    def _refuse_number(self, start: int) -> NoReturn:
        match = _NUMBER_LIKE.match(self.text, start)
        token = match.group() if match else ""
        if start + len(token) == len(self.text):
            self.refuse_end("number", start)
        self.refuse(f"{quoted(token)} is not a JSON number; write digits like 7, -0.5 or 1e5.", start)

    def refuse_not_finite(self, position: int) -> None:
        if literal := _NOT_FINITE.match(self.text, position):
            self.refuse(not_finite(literal.group()), position, "not-finite")

    def literal(self, start: int) -> tuple[bool | None, int]:
        """Read true, false, null or their Python spelling at `start`."""
        self.refuse_not_finite(start)
        word = self.word(start)
        if word in _PYTHON_LITERALS:
            self.repairs.add("python-literal")
            return _PYTHON_LITERALS[word], start + len(word)
        if word in _LITERALS:
            return _LITERALS[word], start + len(word)
        if _CUT_LITERAL.match(self.text, start):
            self.refuse_end("value", start)
        found = quoted(word or self.text[start : start + 1])
        problem = f"found {found} where a value belongs; write a quoted string, a number or null."
        raise refusal("not-json", problem, self.text, start)

    def word(self, start: int) -> str:
        """The identifier at `start`, or "" where none stands."""
        match = _WORD.match(self.text, start)
        return match.group() if match else ""
