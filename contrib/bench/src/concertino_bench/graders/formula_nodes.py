"""What a mathematical answer is once it is read, and what an expression is worth where its names have values.

An expression is a tree of `Node`s. It is evaluated exactly, with fractions, as long as it can be, and else with
floating-point numbers. The invariant: every evaluation is short. Powers and factorials are bounded, and what goes
beyond is an `ArithmeticError`, never a wait.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

Value = Fraction | float | complex
_EXACT_BITS = 20_000
"""Bits of an exact power: beyond it is no answer that anybody writes."""
_FACTORIAL = 1000


class Unreadable(ValueError):
    """A text is no answer that is known here; says where reading stopped."""


class Node(NamedTuple):
    """An expression: what is done, with what.

    Attributes:
        kind: `number`, `name`, `+`, `*`, `/`, `^`, `-`, `±`, `root`, or a function such as `sin`.
        parts: its arguments.
        number: of a number, its value.
        text: the name of a name; the digits of a number as they were written; `-` for the other sign of a `±`.
    """

    kind: str
    parts: tuple[Node, ...] = ()
    number: Fraction = Fraction(0)
    text: str = ""


@dataclass(frozen=True)
class Expression:
    """One value.

    Attributes:
        node: the expression.
        degrees: it ends with the sign of degrees.
        percent: it ends with a percent sign.
        unit: the words behind it, empty where there are none.
    """

    node: Node
    degrees: bool = False
    percent: bool = False
    unit: str = ""


@dataclass(frozen=True)
class Row:
    """Several values.

    Attributes:
        kind: `list` without brackets, `set`, `ratio`, `union`, or the two brackets, such as `(]`.
        items: in their order.
    """

    kind: str
    items: tuple[Shape, ...]


@dataclass(frozen=True)
class Grid:
    """A matrix, or the lines of a definition by cases.

    Attributes:
        kind: `matrix`, `determinant` or `cases`.
        rows: cells, row by row.
    """

    kind: str
    rows: tuple[tuple[Shape, ...], ...]


@dataclass(frozen=True)
class Chain:
    """Sides with relations between them.

    Attributes:
        relations: `=`, `<`, `<=`, `>`, `>=`, `!=`, `in`, `~`; one less than sides.
        sides: in their order.
    """

    relations: tuple[str, ...]
    sides: tuple[Shape, ...]


@dataclass(frozen=True)
class Words:
    """A text that is no formula; in small letters, without anything but letters and digits."""

    text: str


Shape = Expression | Row | Grid | Chain | Words


def names(node: Node) -> Iterator[str]:
    """The names in an expression."""
    if node.kind == "name" and node.text not in _CONSTANTS:
        yield node.text
    for part in node.parts:
        yield from names(part)


def signs(node: Node) -> list[Node]:
    """The expressions that a plus-minus sign stands for: both, or the node itself where there is none."""
    if not _has_sign(node):
        return [node]
    # All signs change together: `\\pm a \\pm b` is two values, and `\\mp` is the other sign.
    return [_signed(node, upper=True), _signed(node, upper=False)]


def evaluate(node: Node, values: Mapping[str, Value]) -> Value:
    """What an expression is worth.

    Args:
        node: without a plus-minus sign.
        values: of every name in it.

    Raises:
        ArithmeticError: it has no value, or one that is too large.
    """
    if node.kind == "number":
        return node.number
    if node.kind == "name":
        return _CONSTANTS.get(node.text) or values[node.text]
    parts = [evaluate(part, values) for part in node.parts]
    try:
        return _checked(_OPERATIONS[node.kind](*parts))
    except (ValueError, TypeError, OverflowError) as error:
        raise ArithmeticError(f"{node.kind}: {error}") from None


def _has_sign(node: Node) -> bool:
    return node.kind == "±" or any(map(_has_sign, node.parts))


def _signed(node: Node, *, upper: bool) -> Node:
    parts = tuple(_signed(part, upper=upper) for part in node.parts)
    if node.kind != "±":
        return node._replace(parts=parts)
    first, second = parts
    return Node("+", (first, second if upper != (node.text == "-") else Node("-", (second,))))


def _checked(value: Value) -> Value:
    if isinstance(value, Fraction):
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _EXACT_BITS:
            raise ArithmeticError("the number is too large")
        return value
    value = complex(value)
    if not (math.isfinite(value.real) and math.isfinite(value.imag)):
        raise ArithmeticError("the number is not finite")
    return value.real if not value.imag else value


def _power(base: Value, exponent: Value) -> Value:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction):
        if exponent.denominator == 1:
            size = max(base.numerator.bit_length(), base.denominator.bit_length())
            if size * abs(exponent) > _EXACT_BITS and abs(base) != 1 and base:
                raise ArithmeticError("the power is too large")
            return base ** int(exponent) if abs(base) != 1 else base ** (int(exponent) % 2)
        if exponent.denominator <= 12 and base >= 0 and abs(exponent.numerator) <= 12:
            root = _exact_root(base, exponent.denominator)
            if root is not None:
                return root**exponent.numerator
    if base == 0:
        if complex(exponent).real > 0:
            return Fraction(0)
        raise ZeroDivisionError("a power of zero")
    return complex(base) ** complex(exponent) if complex(base).imag or complex(base).real < 0 else _real(base, exponent)


def _real(base: Value, exponent: Value) -> Value:
    plain = complex(exponent)
    return complex(base).real ** plain.real if not plain.imag else complex(base) ** plain


def _root(degree: Value, value: Value) -> Value:
    if not isinstance(degree, Fraction) or degree.denominator != 1 or degree < 1:
        return _power(value, Fraction(1) / degree)
    # An odd root of a negative number is the real one, as in school.
    if degree % 2 and not complex(value).imag and complex(value).real < 0:
        return -_power(-value, 1 / degree)
    return _power(value, 1 / degree)


def _exact_root(value: Fraction, degree: int) -> Fraction | None:
    both = []
    for whole in (value.numerator, value.denominator):
        root = math.isqrt(whole) if degree == 2 else round(whole ** (1 / degree)) if whole < 1 << 50 else -1
        if root < 0 or root**degree != whole:
            return None
        both.append(root)
    return Fraction(*both)


def _whole(value: Value) -> int:
    if not isinstance(value, Fraction) or value.denominator != 1 or not 0 <= value <= _FACTORIAL:
        raise ArithmeticError("expected a whole number that is not large")
    return int(value)


def _rounded(how: Callable[[Fraction | float], int]) -> Callable[[Value], Value]:
    return lambda value: Fraction(how(value if isinstance(value, Fraction) else _float(value)))


def _float(value: Value) -> float:
    plain = complex(value)
    if plain.imag:
        raise ArithmeticError("the value is not real")
    return plain.real


def _log(value: Value, base: Value | None = None) -> Value:
    if base is not None:
        return _log(value) / _log(base)
    if isinstance(value, Fraction) and value > 0:
        # The logarithm of an integer may be taken where its float would overflow.
        return math.log(value.numerator) - math.log(value.denominator)
    return cmath.log(complex(value))


def _cot(value: Value) -> Value:
    return 1 / cmath.tan(complex(value))


def _complex(function: Callable[[complex], complex]) -> Callable[[Value], Value]:
    return lambda value: function(complex(value))


_CONSTANTS: Mapping[str, Value] = {"pi": math.pi, "e": math.e, "i": 1j}
_OPERATIONS: Mapping[str, Callable[..., Value]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": operator.truediv,
    "-": operator.neg,
    "^": _power,
    "root": _root,
    "!": lambda value: Fraction(math.factorial(_whole(value))),
    "binom": lambda upper, lower: Fraction(math.comb(_whole(upper), _whole(lower))),
    "abs": abs,
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "ln": _log,
    "log": _log,
    "exp": lambda value: _power(math.e, value),
    "sec": lambda value: 1 / cmath.cos(complex(value)),
    "csc": lambda value: 1 / cmath.sin(complex(value)),
    "cot": _cot,
    "arccot": lambda value: cmath.atan(1 / complex(value)),
    **{name: _complex(getattr(cmath, name)) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"arc{name}": _complex(getattr(cmath, f"a{name}")) for name in ("sin", "cos", "tan")},
}
FUNCTIONS = frozenset(_OPERATIONS) - set("+*/-^!") - {"root", "binom", "abs", "floor", "ceil"}
