"""Regular expressions of schemas: one dialect, read once, meaning the same in every back end.

The dialect is the regular part of ECMA 262 in Unicode mode: literals, classes, groups, `| * + ? {n,m}`, `^ $
\\b \\B`, the usual escapes and `\\p{...}` for general categories. `\\d \\w \\s \\b` are ASCII (and ECMA white
space), `.` stops at line ends, `$` is the very end. Look-around, back-references and everything else that is
not regular is refused, so every admitted pattern matches in linear time: in Rust's engine and in the
automaton of `_automaton` alike.

`parse` yields a *tree* of tuples: ("set", Chars) ("seq", [..]) ("alt", [..]) ("repeat", tree, low, high|None)
("at", "^"|"$"|"b"|"B"). `to_rust` writes a tree in syntax that Rust reads with exactly this meaning.
"""

import re
import unicodedata
from typing import Any, NamedTuple

Tree = tuple[Any, ...]
Ranges = tuple[tuple[int, int], ...]

MAX_PATTERN_CHARS = 4000
MAX_PATTERN_NESTING = 40
_TOP = 0x10FFFF

DIGITS: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
SPACE: Ranges = (
    (9, 13), (32, 32), (160, 160), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
_LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
_SHORTHAND = {"d": DIGITS, "w": WORD, "s": SPACE}
_CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_CATEGORIES = {
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe", "Pi",
    "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp",
}  # fmt: skip
_LONG_NAMES = {
    "Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt", "Mark": "M",
    "Number": "N", "Decimal_Number": "Nd", "Punctuation": "P", "Symbol": "S", "Separator": "Z",
}  # fmt: skip
_QUANTIFIER = re.compile(r"\{(\d{1,6})(,(\d{0,6}))?\}")


class PatternRefused(ValueError):
    """`reason` is `pattern_syntax`, `pattern_not_linear`, `pattern_unsupported` or `pattern_too_large`."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class Chars(NamedTuple):
    """A set of characters: code point ranges, general categories (name, wanted), perhaps complemented."""

    ranges: Ranges
    categories: tuple[tuple[str, bool], ...] = ()
    negated: bool = False

    def has(self, char: str) -> bool:
        """Is this one character in the set?"""
        code = ord(char)
        inside = any(low <= code <= high for low, high in self.ranges)
        if not inside and self.categories:
            category = unicodedata.category(char)
            inside = any(category.startswith(name) is wanted for name, wanted in self.categories)
        return inside is not self.negated


def _complement(ranges: Ranges) -> Ranges:
    holes: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            holes.append((start, low - 1))
        start = high + 1
    return (*holes, (start, _TOP))


def _syntax(message: str) -> PatternRefused:
    return PatternRefused("pattern_syntax", message)


def _unsupported(message: str) -> PatternRefused:
    return PatternRefused("pattern_unsupported", message)


def parse(pattern: str) -> Tree:
    """Read a pattern; raise `PatternRefused` where it is malformed, not regular, or outside the dialect."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise _unsupported(f"a pattern of {len(pattern)} characters; keep it below {MAX_PATTERN_CHARS}")
    reader = _Reader(pattern)
    tree = reader.alternatives(0)
    if reader.at < len(pattern):
        raise _syntax(f"an unopened ')' at character {reader.at}; close what you open, or write \\)")
    return tree


class _Reader:
    __slots__ = ("at", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def take(self, prefix: str) -> bool:
        if self.text.startswith(prefix, self.at):
            self.at += len(prefix)
            return True
        return False

    def alternatives(self, nesting: int) -> Tree:
        if nesting > MAX_PATTERN_NESTING:
            raise _unsupported(f"groups nested beyond {MAX_PATTERN_NESTING} levels; simplify the pattern")
        options = [self.sequence(nesting)]
        while self.take("|"):
            options.append(self.sequence(nesting))
        return options[0] if len(options) == 1 else ("alt", options)

    def sequence(self, nesting: int) -> Tree:
        parts: list[Tree] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self.quantified(self.atom(nesting)))
        return ("seq", parts)

    def quantified(self, atom: Tree) -> Tree:
        bounds = self.bounds()
        if bounds is None:
            return atom
        if atom[0] == "at":
            raise _syntax("a repeated anchor; remove the * + ? or {} after ^ $ \\b \\B")
        self.take("?")  # a lazy quantifier matches the same texts
        if self.bounds() is not None:
            raise _syntax("two quantifiers in a row; put the first in a group, as in (?:a+)*")
        return ("repeat", atom, *bounds)

    def bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        found = _QUANTIFIER.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        low = int(found[1])
        high = low if found[2] is None else int(found[3]) if found[3] else None
        if high is not None and high < low:
            raise _syntax(f"the quantifier {found[0]} counts down; write the smaller number first")
        return low, high

    def atom(self, nesting: int) -> Tree:
        char = self.text[self.at]
        self.at += 1
        if char == "(":
            return self.group(nesting)
        if char == "[":
            return ("set", self.char_class())
        if char == ".":
            return ("set", Chars(_LINE_ENDS, negated=True))
        if char in "^$":
            return ("at", char)
        if char == "\\":
            return self.escape()
        if char in "*+?":
            raise _syntax(f"nothing to repeat before '{char}'; write \\{char} for the character itself")
        return ("set", Chars(((ord(char), ord(char)),)))

    def group(self, nesting: int) -> Tree:
        if self.take("?"):
            named = re.compile(r"P?<[A-Za-z_]\w*>").match(self.text, self.at)
            if named is not None:
                self.at = named.end()
            elif not self.take(":"):
                self.refuse_group()
        tree = self.alternatives(nesting + 1)
        if not self.take(")"):
            raise _syntax("an unclosed '('; close what you open, or write \\(")
        return tree

    def refuse_group(self) -> None:
        if self.text.startswith(("=", "!", "<=", "<!"), self.at):
            raise PatternRefused(
                "pattern_not_linear",
                "look-around, which cannot be matched in linear time; state the allowed form directly",
            )
        raise _unsupported("a group that starts with '(?' and is not (?: or named; write flags out, as in [aA]")

    def escape(self) -> Tree:
        if self.at < len(self.text) and self.text[self.at] in "bB":
            self.at += 1
            return ("at", self.text[self.at - 1])
        return ("set", self.escaped_set())

    def escaped_set(self, in_class: bool = False) -> Chars:
        if self.at >= len(self.text):
            raise _syntax("a single backslash at the end; write \\\\ for the character itself")
        char = self.text[self.at]
        if char.lower() in _SHORTHAND:
            self.at += 1
            ranges = _SHORTHAND[char.lower()]
            return Chars(ranges if char.islower() else _complement(ranges))
        if char in "pP":
            return self.category(char == "p")
        if char in "123456789k" and not in_class:
            raise PatternRefused(
                "pattern_not_linear",
                f"the back-reference \\{char}, which cannot be matched in linear time; spell the text out",
            )
        code = self.escaped_code(in_class)
        return Chars(((code, code),))

    def category(self, wanted: bool) -> Chars:
        found = re.compile(r"\{(?:(?:General_Category|gc)=)?([A-Za-z_]+)\}").match(self.text, self.at + 1)
        name = _LONG_NAMES.get(found[1], found[1]) if found else ""
        if found is None or name not in _CATEGORIES:
            raise _unsupported(
                "a Unicode property that is not a general category; use one (\\p{L}) or ranges ([\\u0370-\\u03FF])"
            )
        self.at = found.end()
        return Chars((), ((name, wanted),))

    def escaped_code(self, in_class: bool) -> int:
        char = self.text[self.at]
        self.at += 1
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "b" and in_class:
            return 8
        if char == "0" and not self.text[self.at : self.at + 1].isdigit():
            return 0
        if char == "c" and re.match(r"[A-Za-z]", self.text[self.at : self.at + 1]):
            self.at += 1
            return ord(self.text[self.at - 1]) % 32
        if char in "xu":
            return self.hex_code(char)
        if char.isascii() and char.isalnum():
            raise _unsupported(f"the escape \\{char}, which is not in ECMA 262; use ^ and $ for the ends")
        return ord(char)

    def hex_code(self, kind: str) -> int:
        form = r"([0-9A-Fa-f]{2})" if kind == "x" else r"([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\}"
        found = re.compile(form).match(self.text, self.at)
        if found is None:
            raise _syntax(f"an incomplete \\{kind} escape; write \\x41, \\u0041 or \\u{{1F600}}")
        self.at = found.end()
        code = int(found[found.lastindex or 1], 16)
        if 0xD800 <= code < 0xDC00:
            low = re.compile(r"\\u(D[C-F][0-9A-F]{2})", re.IGNORECASE).match(self.text, self.at)
            if low is not None:
                self.at = low.end()
                return 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        if 0xD800 <= code < 0xE000 or code > _TOP:
            raise _syntax(f"\\{kind} escape U+{code:04X}, which is not a character; write the whole code point")
        return code

    def char_class(self) -> Chars:
        negated = self.take("^")
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[str, bool]] = []
        while not self.take("]"):
            first = self.class_item()
            if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                ranges.append(_span(first, self.class_item()))
            else:
                ranges.extend(first.ranges)
                categories.extend(first.categories)
        if not ranges and not categories:
            raise _unsupported("an empty class; write [\\s\\S] for any character")
        return Chars(_merged(ranges), tuple(categories), negated)

    def class_item(self) -> Chars:
        if self.at >= len(self.text):
            raise _syntax("an unclosed '['; close it, or write \\[")
        if self.take("\\"):
            return self.escaped_set(in_class=True)
        char = self.text[self.at]
        self.at += 1
        return Chars(((ord(char), ord(char)),))


def _span(first: Chars, last: Chars) -> tuple[int, int]:
    ends = [
        item.ranges[0][0] for item in (first, last) if len(item.ranges) == 1 and item.ranges[0][0] == item.ranges[0][1]
    ]
    if len(ends) != 2 or ends[0] > ends[1]:
        raise _syntax("a range in [...] that does not run from one character up to another; write \\- for a hyphen")
    return ends[0], ends[1]


def _merged(ranges: list[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def to_rust(tree: Tree) -> str:
    """The tree in syntax that Rust's linear engine reads with the same meaning."""
    kind = tree[0]
    if kind == "set":
        return _rust_set(tree[1])
    if kind == "seq":
        return "".join(to_rust(part) for part in tree[1])
    if kind == "alt":
        return "(?:" + "|".join(to_rust(option) for option in tree[1]) + ")"
    if kind == "at":
        return {"^": "^", "$": "$", "b": r"(?-u:\b)", "B": r"(?-u:\B)"}[tree[1]]
    _, inner, low, high = tree
    counted = "*" if (low, high) == (0, None) else f"{{{low},{'' if high is None else high}}}"
    return f"(?:{to_rust(inner)}){counted}"


def _rust_set(chars: Chars) -> str:
    ranges = "".join(_rust_char(low) + ("" if low == high else "-" + _rust_char(high)) for low, high in chars.ranges)
    names = "".join(rf"\{'p' if wanted else 'P'}{{{name}}}" for name, wanted in chars.categories)
    return f"[{'^' if chars.negated else ''}{ranges}{names}]"


def _rust_char(code: int) -> str:
    return chr(code) if chr(code).isalnum() and code < 128 else f"\\u{{{code:X}}}"
