r"""One mathematical answer, in LaTeX or as people type it, read into nodes.

Read are numbers, mixed fractions, expressions, lists, tuples, intervals, sets, unions, ratios, numbers in another base,
matrices, `cases`, equations and inequalities. Styles, spaces, currency signs and units are no part of a value: a unit
is kept apart. The invariants: the whole answer is read or none of it, `Unreadable` says where it stopped; and the time
grows with its length, which is bounded.
"""

from __future__ import annotations

import re
from fractions import Fraction

from .formula_nodes import FUNCTIONS, Chain, Expression, Grid, Node, Row, Shape, Words
from .formula_text import tidy

_LONGEST = 2000
_DEPTH = 40
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
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho sigma tau upsilon "
    "phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega infty ell hbar angle triangle "
    "mathbb dots ldots cdots aleph partial nabla prime star".split()
)
_MARKS = frozenset({"overline", "vec", "hat", "bar", "overrightarrow", "widehat", "tilde", "underline", "mathcal"})
_RELATIONS = {
    **{sign: sign for sign in ("=", "<", ">", "<=", ">=", "!=")},
    **{"le": "<=", "leq": "<=", "leqslant": "<=", "ge": ">=", "geq": ">=", "geqslant": ">=", "lt": "<", "gt": ">"},
    **{"ne": "!=", "neq": "!=", "in": "in", "approx": "~", "simeq": "~", "equiv": "="},
}
_TIMES = frozenset({"*", "cdot", "times", "ast"})
_OVER = frozenset({"/", "div"})
_NAMED = {"pi": "pi", "e": "e", "i": "i", "infty": "∞", "inf": "∞", "infinity": "∞"}
_FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "cfrac"})
_JOINED = re.compile(r"\s*(?:and|or|,|;|&)*\s*")
_DENIED = re.compile(r"\b(?:not?|never|except|without|neither)\b", re.IGNORECASE)
_TRIGONOMETRY = frozenset({"sin", "cos", "tan", "cot", "sec", "csc"})


class Unreadable(ValueError):
    """A text is no answer that this reader knows; says where it stopped."""


def read_formula(latex: str) -> Shape:
    """Read an answer.

    Raises:
        Unreadable: it is none that is known here.
    """
    if len(latex) > _LONGEST:
        raise Unreadable(f"the answer has {len(latex)} characters, at most {_LONGEST} are read")
    reader = _Reader(tidy(latex))
    shape = reader.several("")
    if reader.here:
        raise reader.stopped()
    return shape


def words(text: str) -> str:
    """A text as words: small letters and digits, single blanks."""
    bare = re.sub(r"\\(?:text|unit|textbf|textit|mathrm|mathbf|textnormal|mbox)(?![A-Za-z])", " ", text)
    return " ".join(re.sub(r"[\W_]+", " ", bare).lower().split())


class _Reader:
    """A place in the tokens of an answer."""

    def __init__(self, text: str) -> None:
        self.tokens = [(match.lastgroup or "", match[match.lastgroup or ""]) for match in _TOKEN.finditer(text)]
        self.at = 0
        self.depth = 0
        self.bars = 0
        # Expressions in brackets that were read before it was known that they are not lists: where they end.
        self.seen: dict[int, tuple[Node, int]] = {}
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

    def joins(self) -> bool:
        """Whether what comes next parts the items of a list; it is taken."""
        before = self.at
        while self.skip(",", ";", "and", "or", "&") or self._says_join():
            pass
        return self.at > before

    def _says_join(self) -> bool:
        if self.kind == "text" and _JOINED.fullmatch(self.here):
            self.at += 1
            return True
        return False

    # -- several values ------------------------------------------------------------------------------------------------

    def several(self, closing: str) -> Shape:
        """A list up to a closing token, which is not taken; its only item where there is one."""
        self.depth += 1
        if self.depth > _DEPTH:
            raise Unreadable(f"brackets are nested deeper than {_DEPTH}")
        items: list[Shape] = []
        while self.here and not self.closes(closing):
            items.append(self.relation())
            self.skip("quad", "qquad")
            if not self.joins() and self.here and not self.closes(closing):
                raise self.stopped()
        self.depth -= 1
        if not items:
            raise self.stopped("a value")
        return items[0] if len(items) == 1 else Row("list", tuple(items))

    def closes(self, closing: str) -> bool:
        return bool(closing) and self.kind != "text" and self.here in closing.split()

    def relation(self) -> Shape:
        relations: list[str] = []
        sides = [self.side()]
        while self.kind != "text" and self.here in _RELATIONS:
            relations.append(_RELATIONS[self.take()])
            sides.append(self.side())
        return Chain(tuple(relations), tuple(sides)) if relations else sides[0]

    def side(self) -> Shape:
        """A union, a ratio, or one value."""
        parts = [self.value()]
        union = False
        while self.skip("cup", "∪", "bigcup"):
            union = True
            parts.append(self.value())
        if union:
            return Row("union", tuple(parts))
        while self.skip(":", "colon"):
            parts.append(self.value())
        return Row("ratio", tuple(parts)) if len(parts) > 1 else parts[0]

    def value(self) -> Shape:
        """A bracket of several values, a matrix, a set, words, or an expression."""
        if self.kind == "text":
            return self.worded()
        start = self.at
        if self.here in ("begin", "emptyset", "varnothing") or self.here in "([{" or self.kind == "escaped":
            shape = self.enclosed()
            if shape is not None:
                return shape
            self.at = start
        return self.expression()

    def worded(self) -> Shape:
        """Words alone; words before a formula say what it is, and are no part of it."""
        said = self.take()
        while self.kind == "text" and not _JOINED.fullmatch(self.here):
            said += f" {self.take()}"
        letter = said.strip(" ()")
        if len(letter) == 1 and letter.isalpha() and not self.begins():
            self.at -= 1
            self.tokens[self.at] = ("letter", letter)
            return self.expression()
        if self.begins() and not _DENIED.search(said):
            return self.value()
        return Words(words(said))

    def enclosed(self) -> Shape | None:
        """What stands in brackets and is more than an expression; None where it is one, or a part of one."""
        start, kind, opened = self.at, self.kind, self.take()
        if opened == "begin":
            return self.environment()
        if opened in ("emptyset", "varnothing"):
            return Row("set", ())
        if kind == "escaped" and opened == "{":
            return self.set()
        if opened == "{":
            inside = self.several("}")
            self.expect("}")
            shape = Row("set", inside.items) if isinstance(inside, Row) and inside.kind == "list" else inside
            return self.unless_expression(shape, start)
        if opened not in ("(", "["):
            return None
        inside = self.several(") ]")
        closed = self.take()
        if isinstance(inside, Row) and inside.kind == "list":
            return Row(opened + closed, inside.items)
        return self.unless_expression(inside, start)

    def unless_expression(self, shape: Shape, start: int) -> Shape | None:
        if not isinstance(shape, Expression):
            return shape
        # Kept, for reading each of many brackets twice would take exponential time.
        self.seen[start] = (shape.node, self.at)
        return None

    def set(self) -> Shape:
        if self.kind == "escaped" and self.here == "}":
            self.take()
            return Row("set", ())
        self.bars += 1  # a bar here parts the set from its condition
        inside = self.several("} | mid")
        self.bars -= 1
        if self.skip("|", "mid", ":"):  # a set that is described: both halves count
            inside = Row("list", (inside, self.several("}")))
        self.expect("}")
        return Row("set", inside.items if isinstance(inside, Row) and inside.kind == "list" else (inside,))

    def environment(self) -> Shape:
        name = self.braced_name()
        if name == "array":
            self.braced_name()
        rows: list[tuple[Shape, ...]] = []
        cells: list[Shape] = []
        while not self.skip("end"):
            if self.kind == "break":
                self.take()
                rows, cells = [*rows, tuple(cells)], []
            elif not self.skip("&", "hline"):
                cells.extend(self.cell())
        rows.append(tuple(cells))
        self.braced_name()
        rows = [row for row in rows if row]
        if not rows:
            raise self.stopped("rows")
        if name.rstrip("*").endswith("cases") or name in ("aligned", "align", "gathered"):
            return Grid("cases", tuple(rows))
        if len({len(row) for row in rows}) > 1:
            raise Unreadable("the rows of the matrix have different lengths")
        return Grid("determinant" if name == "vmatrix" else "matrix", tuple(rows))

    def cell(self) -> list[Shape]:
        """What stands in one cell: a value, and a condition where no `&` parts the two."""
        if not self.here:
            raise self.stopped("\\end")
        shapes: list[Shape] = []
        while self.here and self.here not in ("&", "end") and self.kind != "break":
            self.skip_condition()
            if self.here in ("&", "end") or self.kind == "break":
                break
            shapes.append(self.relation())
            self.skip(",", ";", ".")
        return shapes

    def skip_condition(self) -> None:
        while self.kind in ("text", "word") and (
            words(self.here) in ("if", "for", "when", "where", "") or not words(self.here)
        ):
            self.take()

    def braced_name(self) -> str:
        self.expect("{")
        name = ""
        while self.here and self.here != "}":
            name += self.take()
        self.expect("}")
        return name

    # -- expressions ---------------------------------------------------------------------------------------------------

    def expression(self) -> Shape:
        self.unit, self.degrees, self.percent = "", False, False
        node = self.sum()
        return Expression(node, self.degrees, self.percent, self.unit)

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > _DEPTH:
            raise Unreadable(f"it is nested deeper than {_DEPTH}")
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
        while self.kind == "text" and not _JOINED.fullmatch(self.here):
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
            return known or here in ("sqrt", "binom", "lfloor", "lceil", "lvert", "lg")
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
        if self.at in self.seen:
            node, self.at = self.seen[self.at]
            return node
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
            return self.absolute("|")
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

    def absolute(self, closing: str) -> Node:
        self.bars += 1
        node = self.sum()
        self.bars -= 1
        self.expect(closing)
        return Node("abs", (node,))

    def command(self, name: str) -> Node:
        if name in _FRACTIONS:
            upper = self.argument()
            return Node("/", (upper, self.argument()))
        if name == "sqrt":
            degree = _number("2")
            if self.skip("["):
                degree = self.sum()
                self.expect("]")
            return Node("root", (degree, self.argument()))
        if name == "binom":
            upper = self.argument()
            return Node("binom", (upper, self.argument()))
        if name in ("lfloor", "lceil", "lvert"):
            node = self.sum() if name != "lvert" else self.absolute("rvert")
            if name == "lvert":
                return node
            self.expect("rfloor" if name == "lfloor" else "rceil")
            return Node(name[1:], (node,))
        if name in FUNCTIONS or name == "lg":
            return self.function(name)
        if name in _MARKS:
            return Node("name", text=f"{name} {self._raw_group()}")
        if name == "mathbb":
            return Node("name", text=f"mathbb {self._raw_group()}")
        if name in _NAMED:
            return Node("name", text=_NAMED[name])
        if name in _GREEK:
            return self.name(name)
        self.at -= 1
        raise self.stopped("a value")

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


_BASES = dict(
    zip(
        "two three four five six seven eight nine ten twelve sixteen".split(),
        map(str, (*range(2, 11), 12, 16)),
        strict=True,
    )
)


def _number(digits: str) -> Node:
    return Node("number", number=Fraction(digits), text=digits)
