"""Three real tools, without any model: a calculator, a reader that says what a question text states, and a combiner.

The calculator walks the syntax tree of an arithmetic expression; nothing is ever evaluated as Python.
Sizes are bounded before anything is computed, so no expression can take more than a few microseconds per
character.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from concertino import tool
from concertino.text import boxed

from concertino_toy.problems.grammar import MODULUS, Problem, read
from concertino_toy.reading import write_boxes

MAX_CHARACTERS = 2000
MAX_DEPTH = 100
MAX_BITS = 4096

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


@tool(retry_safe=True)
def calculate(expression: str, modulus: int = MODULUS) -> int:
    """Work out an arithmetic expression of whole numbers, modulo `modulus`.

    Args:
        expression: whole numbers with + - * // % ** and parentheses, such as "3 * (4 + 5)".
        modulus: 23 unless given; 0 for the plain result.
    """
    if len(expression) > MAX_CHARACTERS:
        raise ValueError(f"the expression has {len(expression)} characters; at most {MAX_CHARACTERS} are worked out")
    if modulus < 0:
        raise ValueError(f"modulus={modulus}; expected a whole number > 0, or 0 for the plain result")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        raise ValueError(
            f'{expression[:80]!r} is not an arithmetic expression ({reason}); expected one such as "3 * (4 + 5)"'
        ) from None
    value = _value(tree.body, 0)
    return value % modulus if modulus else value


def _value(node: ast.expr, depth: int) -> int:
    if depth > MAX_DEPTH:
        raise ValueError(f"the expression is nested more than {MAX_DEPTH} deep; split it")
    # Not isinstance: True is an int, too.
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _bounded(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand, depth + 1)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left, depth + 1), _value(node.right, depth + 1)
        return _apply(node.op, left, right)
    raise ValueError(
        f"{ast.unparse(node)[:80]!r} is not allowed; only whole numbers, + - * // % ** and parentheses are"
    )


def _apply(op: ast.operator, left: int, right: int) -> int:
    # Before the power is computed, which alone could take for ever.
    if isinstance(op, ast.Pow) and (right < 0 or left.bit_length() * right > MAX_BITS):
        raise ValueError(f"the exponent {str(right)[:20]} is out of bounds; results have at most {MAX_BITS} bits")
    if isinstance(op, ast.FloorDiv | ast.Mod) and right == 0:
        raise ValueError("division by zero; change the divisor")
    return _bounded(_BINARY[type(op)](left, right))


def _bounded(value: int) -> int:
    if value.bit_length() > MAX_BITS:
        raise ValueError(f"a number of more than {MAX_BITS} bits came up; split the expression")
    return value


@tool(retry_safe=True)
def read_problem(text: str) -> dict[str, Any]:
    """List what a question text states: every quantity with its formula, what is asked, notes to ignore.

    Args:
        text: one or more problems, such as "The number of each A's B equals 7. How many B does A have?"
    """
    problems = read(text, strict=False).problems
    return {"count": len(problems), "problems": [_listing(problem) for problem in problems]}


@tool(retry_safe=True)
def combine(opinions: list[list[str]]) -> str:
    """Join the answers of several solvers: one \\boxed{} per value, in the order of the problems.

    Args:
        opinions: one list per problem: the replies of those who solved it, the most trusted last. The answer that most
            of them give counts; among equals, the later one.
    """
    values = (value for number, replies in enumerate(opinions, 1) for value in _opinion(number, replies))
    return "\n".join(write_boxes(values))


def _opinion(number: int, replies: list[str]) -> tuple[str, ...]:
    answers = [boxes for reply in replies if (boxes := answers_in(reply))]
    if not answers:
        raise ValueError(f"none of the {len(replies)} replies about problem {number} holds an answer in \\boxed{{}}")
    votes = Counter(answers)
    # Reversed, as max keeps the first of equals and the later one counts.
    return max(reversed(answers), key=lambda answer: votes[answer])


@lru_cache(maxsize=1024)  # the leader reads the same replies again in every turn
def answers_in(reply: str) -> tuple[str, ...]:
    """The boxed answers of a reply; none if one of the boxes is empty."""
    boxes = tuple(boxed(reply))
    return boxes if all(boxes) else ()


def _listing(problem: Problem) -> dict[str, Any]:
    listing: dict[str, Any] = {
        "problem": problem.number,
        "quantities": {str(quantity): relation.formula() for quantity, relation in problem.facts.items()},
        "asked": [str(ask) for ask in problem.asks],
    }
    if problem.needles:
        listing["magic_numbers"] = dict(problem.needles)
    if problem.lures:
        listing["notes_to_ignore"] = [lure.text for lure in problem.lures]
    if problem.unread:
        listing["not_understood"] = list(problem.unread)
    return listing
