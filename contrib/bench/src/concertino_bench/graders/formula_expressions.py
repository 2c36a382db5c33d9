r"""Expressions in LaTeX, token by token: numbers, names, fractions, roots, powers, functions, and units behind a value.

The invariants: a token is read once, so the time grows with the length; brackets are nested up to a bound; and what is
not known is `Unreadable`, and never skipped.
"""

from __future__ import annotations

import re
from fractions import Fraction

from .formula_nodes import FUNCTIONS, Expression, Node, Unreadable
from .formula_text import words

MOST_DEPTH = 40
_TOKEN = re.compile(
    r"\\(?:text|unit)\{(?P<text>[^{}]*)\}"
    r"|(?P<number>\d+(?:\.\d+)?|\.\d+)"
    r"|\\(?P<command>[A-Za-z]+)"
    r"|(?P<break>\\\\)"
    r"|\\(?P<escaped>[{}|%])"
    r"|(?P<word>[A-Za-z]{2,})"
    r"|(?P<sign><=|>=|!=|\*\*|\.\.\.|\S)"
)
_GREEK = frozenset(
    re.findall(
        r"\w+",
        "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau "
        "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega infty ell hbar "
        "angle triangle mathbb dots ldots cdots aleph partial nabla star",
    )
)
_MARKS = frozenset({"overline", "vec", "hat", "bar", "overrightarrow", "widehat", "tilde", "underline", "mathcal"})
_TIMES = frozenset({"*", "cdot", "times", "ast"})
_OVER = frozenset({"/", "div"})
_NAMED = {"pi": "pi", "e": "e", "i": "i", "infty": "∞", "inf": "∞", "infinity": "∞"}
_FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "cfrac"})
_TRIGONOMETRY = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})
JOINED = re.compile(r"\s*(?:and|or|,|;|&)*\s*")


class ExpressionReader:
    """A place in the tokens of an answer."""

    def __init__(self, text: str) -> None:
        self.tokens = [(match.lastgroup or "", match[match.lastgroup or ""]) for match in _TOKEN.finditer(text)]
        self.at = 0
        self.depth = 0
        self.bars = 0
        # What stood behind the last value that was read, and is no part of it.
        self.unit, self.degrees, self.percent = "", False, False

    # -- tokens --------------------------------------------------------------------------------------------------------

    @property
    def here(self) -> str:
        """The text of the next token, empty at the end."""
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        text = self.here
        self.at += 1
        return text

    def skip(self, *texts: str) -> bool:
        """Whether the next token is one of these, which is then taken; a text in words is never one of them."""
        if self.kind != "text" and self.here in texts and self.here:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.skip(text):
            raise self.stopped(text)

    def stopped(self, wanted: str = "") -> Unreadable:
        place = f"at {self.here!r}" if self.here else "at the end"
        return Unreadable(f"stopped {place}{f', expected {wanted!r}' if wanted else ''}")

    # -- expressions ---------------------------------------------------------------------------------------------------

    def expression(self) -> Expression:
        self.unit, self.degrees, self.percent = "", False, False
        node = self.sum()
        return Expression(node, self.degrees, self.percent, self.unit)

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Unreadable(f"it is nested deeper than {MOST_DEPTH}")
        node = Node("number") if self.here in ("pm", "mp") else self.term()
        while self.here in ("+", "-", "pm", "mp") and self.kind != "text":
            sign = self.take()
            right = self.term()
            if sign in ("pm", "mp"):
                node = Node("±", (node, right), text="-" if sign == "mp" else "")
            else:
                node = Node("+", (node, right if sign == "+" else Node("-", (right,))))
        self.depth -= 1
        return node

    def term(self) -> Node:
        node = self.signed()
        while True:
            if self.kind == "text":
                self.measured()
                return node
            if self.skip(*_TIMES):
                node = Node("*", (node, self.signed()))
            elif self.skip(*_OVER):
                node = Node("/", (node, self.signed()))
            elif self.begins():
                node = Node("*", (node, self.power()))
            else:
                return node

    def measured(self) -> None:
        """Take the unit that stands behind a value, with its power; not a word that parts a list."""
        while self.kind == "text" and not JOINED.fullmatch(self.here):
            said = self.take()
            self.unit = f"{self.unit} {words(said)}".strip()
            if self.skip("^"):
                power = self.argument()
                self.unit += str(power.number) if power.kind == "number" else ""
            if self.skip("/"):
                self.unit += "/"

    def signed(self) -> Node:
        if self.skip("-"):
            return Node("-", (self.signed(),))
        if self.skip("+"):
            return self.signed()
        if self.here in ("pm", "mp"):
            sign = self.take()
            return Node("±", (Node("number"), self.signed()), text="-" if sign == "mp" else "")
        return self.power()

    def begins(self) -> bool:
        """Whether an expression can begin here, so that it is multiplied with what stands before."""
        here, kind = self.here, self.kind
        if kind in ("number", "letter"):
            return True
        if kind == "word":
            return here not in ("and", "or")
        if kind == "command":
            known = here in _FRACTIONS or here in FUNCTIONS or here in _GREEK or here in _MARKS or here in _NAMED
            return known or here in ("sqrt", "binom", "lfloor", "lceil", "lg")
        if here == "|":
            return not self.bars
        return here in ("(", "[", "{", "√", "∞") if kind == "sign" and not here.isalpha() else here.isalpha()

    def power(self) -> Node:
        node = self.atom()
        while True:
            if self.skip("^", "**"):
                if self.skip("circ", "degree"):
                    self.degrees = True
                elif self.here == "{" and self.tokens[self.at + 1 : self.at + 2] == [("command", "circ")]:
                    self.at += 2
                    self.expect("}")
                    self.degrees = True
                else:
                    node = Node("^", (node, self.exponent()))
            elif self.skip("degree", "°"):
                self.degrees = True
            elif self.skip("!"):
                node = Node("!", (node,))
            elif self.skip("%"):
                self.percent = True
            elif self.skip("'", "prime"):
                node = Node("name", text=f"{node.text}'") if node.kind == "name" else node
            else:
                return node

    def exponent(self) -> Node:
        if self.skip("-"):
            return Node("-", (self.argument(),))
        return self.argument(whole=True)

    def argument(self, *, whole: bool = False) -> Node:
        """What a command or a sign takes: a group, or the next single thing; of a number its first digit."""
        if self.here == "{" and self.kind == "sign":
            self.take()
            node = self.sum()
            self.measured()
            self.expect("}")
            return node
        if self.kind == "number" and not whole and len(self.here) > 1 and self.here[0] != ".":
            digit, rest = self.here[0], self.here[1:]
            self.tokens[self.at] = ("number", rest)
            return _number(digit)
        return self.atom()

    def atom(self) -> Node:
        kind, here = self.kind, self.take()
        if kind == "number":
            return self.based(here)
        if kind == "command" or (kind == "word" and (here in FUNCTIONS or here in ("sqrt", "pi", "infinity", "inf"))):
            return self.command(here)
        if kind in ("letter", "word") or (kind == "sign" and here.isalpha()):
            return self.letters(here)
        if here in ("(", "["):
            node = self.sum()
            self.expect(")" if here == "(" else "]")
            return node
        if here == "{" and kind == "sign":
            node = self.sum()
            self.expect("}")
            return node
        if here == "|":
            return self.absolute()
        if here in _NAMED or here == "∞":
            return Node("name", text=_NAMED.get(here, here))
        if here in ("√",):
            return Node("root", (_number("2"), self.argument(whole=True)))
        self.at -= 1
        raise self.stopped("a value")

    def based(self, digits: str) -> Node:
        """A number, with its base where it has one."""
        if not self.skip("_"):
            return _number(digits)
        if self.kind == "sign" and self.here == "{" and self.tokens[self.at + 1][0] == "text":
            self.take()
            base = words(self.take())
            self.expect("}")
        else:
            base = self.argument(whole=True).text
        return Node("name", text=f"{digits}_{_BASES.get(base, base)}")

    def letters(self, text: str) -> Node:
        """A name; a word of several letters is a product, as in `AB`."""
        if len(text) > 3:
            raise Unreadable(f"{text[:40]!r} is a word")
        node = self.name(text[-1])
        for letter in reversed(text[:-1]):
            node = Node("*", (Node("name", text=letter), node))
        return node

    def name(self, text: str) -> Node:
        if self.skip("_"):
            start = self.at
            if self.here == "{":
                depth = 0
                while self.here:
                    depth += {"{": 1, "}": -1}.get(self.here, 0)
                    self.at += 1
                    if not depth:
                        break
            else:
                self.at += 1
            text = f"{text}_{''.join(token[1] for token in self.tokens[start : self.at]).strip('{}')}"
        return Node("name", text=text)

    def absolute(self) -> Node:
        self.bars += 1
        node = self.sum()
        self.bars -= 1
        self.expect("|")
        return Node("abs", (node,))

    def command(self, name: str) -> Node:
        if name in _FRACTIONS or name == "binom":
            upper = self.argument()
            return Node("binom" if name == "binom" else "/", (upper, self.argument()))
        if name == "sqrt":
            return self.root()
        if name in ("lfloor", "lceil"):
            node = self.sum()
            self.expect("rfloor" if name == "lfloor" else "rceil")
            return Node(name[1:], (node,))
        if name in FUNCTIONS or name == "lg":
            return self.function(name)
        if name in _MARKS or name == "mathbb":
            return Node("name", text=f"{name} {self._raw_group()}")
        if name in _NAMED:
            return Node("name", text=_NAMED[name])
        if name in _GREEK:
            return self.name(name)
        self.at -= 1
        raise self.stopped("a value")

    def root(self) -> Node:
        degree = _number("2")
        if self.skip("["):
            degree = self.sum()
            self.expect("]")
        return Node("root", (degree, self.argument()))

    def braced_name(self) -> str:
        self.expect("{")
        name = ""
        while self.here and self.here != "}":
            name += self.take()
        self.expect("}")
        return name

    def _raw_group(self) -> str:
        if self.here != "{":
            return self.take()
        return self.braced_name()

    def function(self, name: str) -> Node:
        power: Node | None = None
        base: tuple[Node, ...] = ()
        if name == "lg":
            name, base = "log", (_number("10"),)
        elif name == "log" and self.skip("_"):
            base = (self.argument(),)
        if self.skip("^"):
            power = self.exponent()
        degrees, self.degrees = self.degrees, False
        argument = self.power() if self.here in ("(", "{", "[", "|") else self.product()
        if self.degrees and name in _TRIGONOMETRY:
            argument = Node("*", (argument, Node("/", (Node("name", text="pi"), _number("180")))))
        self.degrees = degrees
        if power == Node("-", (_number("1"),)):
            return Node(f"arc{name}" if f"arc{name}" in FUNCTIONS else name, (argument,))
        node = Node(name, (argument, *base))
        return node if power is None else Node("^", (node, power))

    def product(self) -> Node:
        """What a function takes without brackets: `2x` in `\\sin 2x \\cos y`."""
        node = self.signed()
        while self.begins() and self.here not in FUNCTIONS and self.here not in ("(", "["):
            node = Node("*", (node, self.power()))
        return node


_DIGITS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_BASES = {"sixteen": "16", **{name: str(base) for base, name in enumerate(_DIGITS, 2)}}


def _number(digits: str) -> Node:
    return Node("number", number=Fraction(digits), text=digits)
