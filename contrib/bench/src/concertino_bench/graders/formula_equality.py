r"""Whether two answers that were read have the same value: our own judge, beside math-verify.

Numbers are compared exactly where they can be, expressions at points that are always the same. The invariants: two that
differ at a point are different; what cannot be evaluated at any point is `Unreadable`, and no verdict; a comparison
takes milliseconds. What a convention decides is named by a setting, and said in the note.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from .formula_nodes import (
    Chain,
    Expression,
    Grid,
    Node,
    Row,
    Shape,
    Unreadable,
    Value,
    Words,
    evaluate,
    names,
    signs,
)
from .formula_reading import read_formula
from .formula_text import words

_POINTS = 12
_ENOUGH = 3
_CLOSE = 1e-9
_ITEMS = 100
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_SIX_DIGITS = Fraction(1, 2_000_000)


_INFINITY = Node("name", text="∞")
_INVERSE = Node("-", (Node("number", number=Fraction(1), text="1"),))
_ARROWS = ("vec ", "overrightarrow ")
_NAMING = ("/", "sin", "cos", "tan", "cot", "sec", "csc")
_LOW, _HIGH = Expression(Node("-", (_INFINITY,))), Expression(_INFINITY)
_REALS = Node("name", text="mathbb R")


class Conventions(NamedTuple):
    """What fields of mathematics and suites of tests decide differently.

    Attributes:
        ordered: a bare list is equal only in the same order.
        rounding: an exact answer equals a decimal gold, of three or more digits, that it rounds to.
        percent: `10\\%` is 0.1 as well as 10.
        units: an answer with another unit than the gold's is wrong.
    """

    ordered: bool = False
    rounding: bool = True
    percent: bool = False
    units: bool = False


class Judged(NamedTuple):
    """A verdict.

    Attributes:
        equal: whether the two are the same.
        note: the conventions that decided, such as "the order of a bare list does not count"; empty where none did.
    """

    equal: bool
    note: str = ""


_USUAL = Conventions()


def equal_formulas(gold: str, found: str, conventions: Conventions = _USUAL) -> Judged:
    """Compare two answers in LaTeX.

    Raises:
        Unreadable: one of them cannot be read, or neither can be evaluated.
    """
    theirs, ours = _read(gold), _read(found)
    if isinstance(theirs, Words) or isinstance(ours, Words):
        # Letters that could be read as a product are words where the other side is one.
        return Judged(bool(words(gold)) and words(gold) == words(found))
    judge = _Judge(conventions)
    return Judged(judge.same(theirs, ours), "; ".join(judge.notes))


def _read(text: str) -> Shape:
    try:
        return read_formula(text)
    except Unreadable:
        said = words(text)
        # Words that are no formula are compared as words; anything else has no verdict here.
        if said and not any(mark.isdigit() or mark in "\\=<>^" for mark in text.replace("\\text", "")):
            return Words(said)
        raise


@dataclass
class _Judge:
    """One comparison, gold first."""

    conventions: Conventions
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> bool:
        if text not in self.notes:
            self.notes.append(text)
        return True

    def same(self, gold: Shape, ours: Shape) -> bool:
        gold, ours = _plain(gold), _plain(ours)
        if isinstance(gold, Chain) or isinstance(ours, Chain):
            return self.same_chains(gold, ours)
        if isinstance(gold, Words) or isinstance(ours, Words):
            return gold == ours
        if isinstance(gold, Grid) or isinstance(ours, Grid):
            return isinstance(gold, Grid) and isinstance(ours, Grid) and self.same_grids(gold, ours)
        if isinstance(gold, Row) or isinstance(ours, Row):
            return self.same_rows(_row(gold), _row(ours))
        return self.same_values(gold, ours)

    # -- several values ------------------------------------------------------------------------------------------------

    def same_rows(self, gold: Row, ours: Row) -> bool:
        if len(gold.items) > _ITEMS or len(ours.items) > _ITEMS:
            raise Unreadable(f"more than {_ITEMS} values are not compared")
        if "ratio" in (gold.kind, ours.kind):
            return self.same_ratios(gold, ours)
        if "union" in (gold.kind, ours.kind):
            return self.all_of(_intervals(gold), _intervals(ours))
        kinds = {gold.kind, ours.kind}
        if kinds <= {"list", "set"}:
            if self.conventions.ordered and kinds == {"list"}:
                return self.in_order(gold, ours)
            if not self.all_of(gold.items, ours.items):
                return False
            if kinds == {"list"} and not self.in_order(gold, ours):
                self.note("the order of a bare list does not count")
            return True
        if "set" in kinds or (gold.kind == "[]" and ours.kind == "list" and len(gold.items) == 2):
            return False  # two numbers are no closed interval
        if "list" not in kinds and len(gold.items) == 2 and _closed(gold) != _closed(ours):
            return False
        return self.in_order(gold, ours)

    def in_order(self, gold: Row, ours: Row) -> bool:
        return len(gold.items) == len(ours.items) and all(map(self.same, gold.items, ours.items))

    def all_of(self, gold: Iterable[Shape], ours: Iterable[Shape]) -> bool:
        """Each is among the others; how often does not count."""
        theirs, mine = list(_each(gold)), list(_each(ours))
        return all(any(self.same(one, other) for other in mine) for one in theirs) and all(
            any(self.same(other, one) for other in theirs) for one in mine
        )

    def same_ratios(self, gold: Row, ours: Row) -> bool:
        """Equal parts, or parts in the same proportion; a ratio of two is its quotient too."""
        if len(gold.items) == 1 or len(ours.items) == 1:
            return self.same(_quotient(gold), _quotient(ours))
        if self.in_order(gold, ours):
            return True
        if len(gold.items) != len(ours.items) or any(_zero(item) for item in (*gold.items, *ours.items)):
            return False
        first = _over(gold.items[0], ours.items[0])
        return all(
            self.same(first, _over(one, other)) for one, other in zip(gold.items[1:], ours.items[1:], strict=True)
        )

    def same_grids(self, gold: Grid, ours: Grid) -> bool:
        if gold.kind == "cases" or ours.kind == "cases":
            # The lines of a definition by cases stand in any order.
            rows = [Row("()", row) for row in gold.rows], [Row("()", row) for row in ours.rows]
            return gold.kind == ours.kind and self.all_of(*rows)
        shapes = [len(row) for row in gold.rows], [len(row) for row in ours.rows]
        return (
            gold.kind == ours.kind
            and shapes[0] == shapes[1]
            and all(all(map(self.same, theirs, mine)) for theirs, mine in zip(gold.rows, ours.rows, strict=True))
        )

    # -- equations and inequalities ------------------------------------------------------------------------------------

    def same_chains(self, gold: Shape, ours: Shape) -> bool:
        named, other = _named(gold), _named(ours)
        if named and other and (named[0] == other[0] or isinstance(gold, Chain) != isinstance(ours, Chain)):
            return self.same(named[1], other[1])
        if not (isinstance(gold, Chain) and isinstance(ours, Chain)):
            return False
        theirs, mine = _interval(gold), _interval(ours)
        if theirs and mine:
            return theirs[0] == mine[0] and self.same(theirs[1], mine[1])
        if len(gold.relations) != 1 or len(ours.relations) != 1:
            return (
                len(gold.sides) == len(ours.sides)
                and gold.relations == ours.relations
                and all(map(self.same, gold.sides, ours.sides))
            )
        return self.proportional(gold, ours)

    def proportional(self, gold: Chain, ours: Chain) -> bool:
        """Whether one relation is the other times a number; a negative one turns an inequality around."""
        one, other = _difference(gold), _difference(ours)
        if one is None or other is None:
            sides = [map(self.same, gold.sides, ours.sides), map(self.same, gold.sides, reversed(ours.sides))]
            return gold.relations == ours.relations and any(map(all, sides))
        ratios = [a / b for a, b in _values(one, other) if b and a]
        if len(ratios) < _ENOUGH or any(not _near(ratio, ratios[0]) for ratio in ratios):
            return False
        if isinstance(ratios[0], complex):
            return False
        relation = ours.relations[0] if ratios[0] > 0 else _FLIPPED.get(ours.relations[0], "")
        return relation == gold.relations[0]

    # -- single values -------------------------------------------------------------------------------------------------

    def same_values(self, gold: Expression, ours: Expression) -> bool:
        theirs, mine = signs(gold.node), signs(ours.node)
        if len(theirs) > 1 or len(mine) > 1:
            rows = [Row("list", tuple(map(Expression, nodes))) for nodes in (theirs, mine)]
            return self.all_of(rows[0].items, rows[1].items)
        if self.conventions.units and gold.unit and ours.unit and gold.unit != ours.unit:
            self.note(f"the units differ, {ours.unit} and {gold.unit}")
            return False
        if self.equal(gold.node, ours.node):
            if gold.unit != ours.unit:
                self.note("units are not compared")
            if gold.percent != ours.percent:
                self.note("percent signs are not compared")
            return True
        if gold.degrees != ours.degrees and self.equal(_radians(gold), _radians(ours)):
            return self.note("degrees are compared with radians")
        if self.conventions.percent and gold.percent != ours.percent and self.equal(_share(gold), _share(ours)):
            return self.note("a percentage is compared with a share")
        return False

    def equal(self, gold: Node, ours: Node) -> bool:
        if self.equal_nodes(gold, ours):
            return True
        tens = _to_ten(gold), _to_ten(ours)
        return tens != (gold, ours) and self.equal_nodes(*tens) and self.note("a log without a base is one to 10")

    def equal_nodes(self, gold: Node, ours: Node) -> bool:
        if not {*names(gold), *names(ours)}:
            one, other = evaluate(gold, {}), evaluate(ours, {})
            return self.equal_numbers(gold, ours, one, other)
        pairs = list(_values(gold, ours))
        real = [pair for pair in pairs if not any(isinstance(value, complex) for value in pair)]
        # At points where only one of the two is real they have different domains, which does not count.
        used = real if len(real) >= _ENOUGH else pairs
        return len(used) >= _ENOUGH and all(_near(one, other) for one, other in used)

    def equal_numbers(self, gold: Node, ours: Node, one: Value, other: Value) -> bool:
        if isinstance(one, Fraction) and isinstance(other, Fraction):
            if one == other:
                return True
        elif _near(one, other):
            return True
        if isinstance(one, complex) or isinstance(other, complex):
            return False
        theirs, mine = _decimals(gold), _decimals(ours)
        off = abs(Fraction(one) - Fraction(other))
        if (
            theirs is None
            and mine is not None
            and mine >= 6
            and off <= _SIX_DIGITS * min(Fraction(1), 10 * abs(Fraction(one)))
        ):
            return self.note("six decimals are exact")
        if self.conventions.rounding and theirs is not None and (mine is None or mine > theirs):
            digits = len(str(abs(int(Fraction(one) * 10**theirs))).lstrip("0"))
            if digits >= 3 and off * 2 <= Fraction(1, 10**theirs) + (
                0 if isinstance(other, Fraction) else Fraction(1, 10**15)
            ):
                return self.note("the answer rounds to the gold")
        return False


def _plain(shape: Shape) -> Shape:
    """A set or union of one as that one, and a chain as its value where it only says what it is."""
    if isinstance(shape, Row) and len(shape.items) == 1 and shape.kind in ("set", "list", "union"):
        return _plain(shape.items[0])
    if isinstance(shape, Row) and shape.kind == "union" and all(_is_set(item) for item in shape.items):
        return Row("set", tuple(value for item in shape.items if isinstance(item, Row) for value in item.items))
    if isinstance(shape, Expression) and shape.node == _REALS:
        return Row("()", (_LOW, _HIGH))
    if isinstance(shape, Chain) and "~" in shape.relations:
        return _plain(_exactly(shape))
    if isinstance(shape, Chain) and set(shape.relations) == {"="} and not any(map(_variable, shape.sides[:-1])):
        # `5 + 2 = 7` without any name comes to its last side; `7 = a` is an equation.
        return shape if _variable(shape.sides[-1]) else _plain(shape.sides[-1])
    return shape


def _is_set(shape: Shape) -> bool:
    return isinstance(shape, Row) and shape.kind == "set"


def _exactly(chain: Chain) -> Shape:
    """A chain up to what it is only near to: `x = 1/3` of `x = 1/3 ~ 0.33`; what is only near to a value has it."""
    at = chain.relations.index("~")
    if not at and _is_name(chain.sides[0]) and _variable(chain.sides[0]):
        return Chain(("=",), chain.sides[:2])
    return Chain(chain.relations[:at], chain.sides[: at + 1]) if at else chain.sides[0]


def _row(shape: Shape) -> Row:
    return shape if isinstance(shape, Row) else Row("list", (shape,))


def _each(items: Iterable[Shape]) -> Iterator[Shape]:
    """The items of a list, those with a plus-minus sign as two."""
    for item in items:
        if isinstance(item, Expression):
            yield from (Expression(node, item.degrees, item.percent, item.unit) for node in signs(item.node))
        elif isinstance(item, Chain) and isinstance(item.sides[-1], Expression) and item.relations == ("=",):
            yield from (Chain(item.relations, (item.sides[0], Expression(node))) for node in signs(item.sides[-1].node))
        else:
            yield item


def _intervals(row: Row) -> tuple[Shape, ...]:
    """The parts of a union; inequalities as the intervals that they are."""
    if row.kind not in ("union", "list"):
        return (row,)
    parts = [_interval(item) if isinstance(item, Chain) else None for item in row.items]
    return tuple(part[1] if part else item for part, item in zip(parts, row.items, strict=True))


def _closed(row: Row) -> tuple[bool, bool]:
    """Which ends belong to an interval; an infinite one never does."""
    first, last = row.items[0], row.items[-1]
    return (row.kind[0] == "[" and not _infinite(first), row.kind[-1] == "]" and not _infinite(last))


def _infinite(shape: Shape) -> bool:
    return isinstance(shape, Expression) and "∞" in names(shape.node)


def _variable(shape: Shape) -> bool:
    if isinstance(shape, Expression):
        return any(True for _ in names(shape.node))
    if isinstance(shape, Row):
        return any(map(_variable, shape.items))
    return True


def _is_name(shape: Shape) -> bool:
    """Whether it names a value: `x`, `f(x)`, `f(2)`, `AB`, `|AB|`, `sin A`, `NO/BO`, `A : B`, `(p, q)`, "area"."""
    if isinstance(shape, Row):
        return shape.kind in ("ratio", "()") and all(map(_is_name, shape.items))
    return isinstance(shape, Words) or (isinstance(shape, Expression) and _names_value(shape.node))


def _names_value(node: Node) -> bool:
    first, *others = node.parts or (node,)
    if node.kind == "*":
        # A number behind a name is what a function is taken of; one before it, as in `2x = 4`, makes an equation.
        return _names_value(first) and all(each.kind == "number" or _names_value(each) for each in others)
    if node.kind == "abs":
        # A length between points, or of a vector; `|x| = 1` is an equation.
        return first.text.startswith(_ARROWS) or (first.kind == "*" and all(map(_is_point, first.parts)))
    if node.kind == "^":
        return _names_value(first) and others[0] == _INVERSE
    return node.kind == "name" or (node.kind in _NAMING and all(map(_names_value, node.parts)))


def _is_point(node: Node) -> bool:
    return node.kind == "name" and len(node.text) == 1 and node.text.isupper()


def _named(shape: Shape) -> tuple[Shape | None, Shape] | None:
    """What is named, and its value: of `x = 5`, `x \\in S`, `-2 < x < 7`; None where nothing is."""
    if not isinstance(shape, Chain):
        return None, shape
    first, last = shape.sides[0], shape.sides[-1]
    if set(shape.relations) <= {"="}:
        if _is_name(first):
            return first, last
        return (last, first) if _is_name(last) and not _variable(first) else None
    if shape.relations == ("in",):
        return first, last
    return _interval(shape)


def _interval(chain: Chain) -> tuple[Shape, Shape] | None:
    """The name and the interval of an inequality between a name and numbers."""
    if len(chain.sides) == 3 and len({relation[0] for relation in chain.relations}) == 1:
        first, name, last = chain.sides
        left, right = chain.relations
        if left[0] == ">":
            first, last, left, right = last, first, right, left
        fits = left[0] in "<>" and _is_name(name) and isinstance(first, Expression) and isinstance(last, Expression)
        return (
            (name, Row(("[" if "=" in left else "(") + ("]" if "=" in right else ")"), (first, last))) if fits else None
        )
    if len(chain.sides) != 2 or chain.relations[0][0] not in "<>!":
        return None
    (name, bound), relation = chain.sides, chain.relations[0]
    if not _is_name(name):
        name, bound, relation = bound, name, _FLIPPED[relation]
    if not _is_name(name) or _variable(bound) or not isinstance(bound, Expression):
        return None
    if relation == "!=":
        return name, Row("union", (Row("()", (_LOW, bound)), Row("()", (bound, _HIGH))))
    if relation[0] == "<":
        return name, Row("(" + ("]" if "=" in relation else ")"), (_LOW, bound))
    return name, Row(("[" if "=" in relation else "(") + ")", (bound, _HIGH))


def _difference(chain: Chain) -> Node | None:
    first, second = chain.sides
    if not (isinstance(first, Expression) and isinstance(second, Expression)):
        return None
    return Node("+", (first.node, Node("-", (second.node,))))


def _quotient(row: Row) -> Shape:
    first, *others = row.items
    return _over(first, others[0]) if len(others) == 1 else first


def _over(one: Shape, other: Shape) -> Shape:
    if not (isinstance(one, Expression) and isinstance(other, Expression)):
        raise Unreadable("a ratio of what are no values")
    return Expression(Node("/", (one.node, other.node)))


def _zero(shape: Shape) -> bool:
    return isinstance(shape, Expression) and shape.node.kind == "number" and not shape.node.number


def _to_ten(node: Node) -> Node:
    """The expression with each log that has no base as one to the base 10, and not as the natural one."""
    parts = tuple(map(_to_ten, node.parts))
    if node.kind == "log" and len(parts) == 1:
        parts += (Node("number", number=Fraction(10)),)
    return node._replace(parts=parts)


def _radians(value: Expression) -> Node:
    half = Node("/", (Node("name", text="pi"), Node("number", number=Fraction(180))))
    return Node("*", (value.node, half)) if value.degrees else value.node


def _share(value: Expression) -> Node:
    return Node("/", (value.node, Node("number", number=Fraction(100)))) if value.percent else value.node


def _decimals(node: Node) -> int | None:
    """How many decimals a number was written with; None for anything but a decimal number."""
    while node.kind == "-":
        node = node.parts[0]
    return len(node.text.partition(".")[2]) or None if node.kind == "number" and "." in node.text else None


def _values(one: Node, other: Node) -> Iterator[tuple[Value, Value]]:
    """What both are worth at some points, exact ones first; points where one has no value are left out."""
    known = sorted({*names(one), *names(other)})
    chance = random.Random(20)
    for point in range(_POINTS):
        # Both signs, small and large: what is equal only for positive values is not equal.
        sign = 1 if point % 2 == 0 else -1
        values: dict[str, Value] = {
            name: Fraction(sign * chance.randint(20, 300), chance.choice((7, 11, 13, 17, 97))) for name in known
        }
        try:
            pair = evaluate(one, values), evaluate(other, values)
        except ArithmeticError:
            continue
        yield pair


def _near(one: Value, other: Value) -> bool:
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one == other
    try:
        first, second = complex(one), complex(other)
        return abs(first - second) <= _CLOSE * max(abs(first), abs(second)) + 1e-12 * (not first or not second)
    except OverflowError:
        return False
