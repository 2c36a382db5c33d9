r"""One mathematical answer, in LaTeX or as people type it, read into nodes.

Read are numbers, mixed fractions, expressions, lists, tuples, intervals, sets, unions, ratios, numbers in another base,
matrices, `cases`, equations and inequalities. Styles, spaces, currency signs and units are no part of a value: a unit
is kept apart. The invariants: the whole answer is read or none of it, `Unreadable` says where it stopped; and the time
grows with its length, which is bounded.
"""

from __future__ import annotations

import re

from .formula_expressions import JOINED, MOST_DEPTH, ExpressionReader
from .formula_nodes import Chain, Expression, Grid, Row, Shape, Unreadable, Words
from .formula_text import tidy, words

_LONGEST = 2000
_RELATIONS = {
    **{sign: sign for sign in ("=", "<", ">", "<=", ">=", "!=", "in")},
    **dict.fromkeys(("le", "leq", "leqslant"), "<="),
    **dict.fromkeys(("ge", "geq", "geqslant"), ">="),
    **dict.fromkeys(("ne", "neq"), "!="),
    **dict.fromkeys(("approx", "simeq"), "~"),
    "lt": "<",
    "gt": ">",
    "equiv": "=",
}
_DENIED = re.compile(r"\b(?:not?|never|except|without|neither)\b", re.IGNORECASE)


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


class _Reader(ExpressionReader):
    """Reads several values, and what relates them."""

    def several(self, closing: str) -> Shape:
        """A list up to a closing token, which is not taken; its only item where there is one."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Unreadable(f"brackets are nested deeper than {MOST_DEPTH}")
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
        while self.kind == "text" and not JOINED.fullmatch(self.here):
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
        kind, opened = self.kind, self.take()
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
            return None if isinstance(shape, Expression) else shape
        if opened not in ("(", "["):
            return None
        inside = self.several(") ]")
        if self.here not in (")", "]"):
            raise self.stopped(")")
        closed = self.take()
        if isinstance(inside, Row) and inside.kind == "list":
            return Row(opened + closed, inside.items)
        return None if isinstance(inside, Expression) else inside

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

    def joins(self) -> bool:
        """Whether what comes next parts the items of a list; it is taken."""
        before = self.at
        while self.skip(",", ";", "and", "or", "&") or self._says_join():
            pass
        return self.at > before

    def _says_join(self) -> bool:
        if self.kind == "text" and JOINED.fullmatch(self.here):
            self.at += 1
            return True
        return False
