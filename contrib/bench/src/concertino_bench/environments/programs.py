"""Programming tasks on lists of numbers: words, a reference program, and tests whose results come from elsewhere.

A task is a chain of steps. Each step has words, a line of the reference program, and a function that does the same in
another way; the functions give the expected results, so the reference program can be checked against them.

The invariant: nothing but the words, the signature and the examples is meant for the solver.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

LEVELS = range(1, 5)
STYLES = ("program", "function")
_EXAMPLES, _TESTS = 2, 8
_ENTRY = "solve"

Values = list[int]


class Step(NamedTuple):
    """One step: words, an expression over `ys` and `k`, and the same as a function."""

    text: str
    code: str
    run: Callable[[Values, int], Values]


class Reduction(NamedTuple):
    """The last step: words, an expression, and the same as a function to one number."""

    text: str
    code: str
    run: Callable[[Values, int], int]


def _plain_step(text: str, code: str, run: Callable[[Values, int], Values]) -> Callable[[Random], Step]:
    return lambda rng: Step(text, code, run)


def _multiply(rng: Random) -> Step:
    c = rng.randint(2, 9)
    return Step(f"multiply every number by {c}", f"[y * {c} for y in ys]", lambda ys, k: [sum([y] * c) for y in ys])


def _shift(rng: Random) -> Step:
    c = rng.randint(2, 19)
    return Step(f"add {c} to every number", f"[y + {c} for y in ys]", lambda ys, k: list(map(c.__add__, ys)))


def _keep_divisible(rng: Random) -> Step:
    c = rng.randint(2, 7)
    return Step(
        f"keep only the numbers that are divisible by {c}",
        f"[y for y in ys if y % {c} == 0]",
        lambda ys, k: list(filter(lambda y: y // c * c == y, ys)),
    )


def _remainder(rng: Random) -> Step:
    c = rng.randint(2, 9)
    return Step(
        f"replace every number by its remainder when divided by {c}, which is never negative",
        f"[y % {c} for y in ys]",
        lambda ys, k: [y - c * (y // c) for y in ys],
    )


def _unique(ys: Values, k: int) -> Values:
    return sorted(set(ys), key=ys.index)


def _differences(ys: Values, k: int) -> Values:
    return [after - before for before, after in itertools.pairwise(ys)]


STEPS: tuple[Callable[[Random], Step], ...] = (
    _multiply,
    _shift,
    _keep_divisible,
    _remainder,
    _plain_step("subtract k from every number", "[y - k for y in ys]", lambda ys, k: [-(k - y) for y in ys]),
    _plain_step("square every number", "[y * y for y in ys]", lambda ys, k: [pow(y, 2) for y in ys]),
    _plain_step(
        "replace every number by its absolute value", "[abs(y) for y in ys]", lambda ys, k: [max(y, -y) for y in ys]
    ),
    _plain_step(
        "keep only the numbers that are greater than k",
        "[y for y in ys if y > k]",
        lambda ys, k: list(filter(k.__lt__, ys)),
    ),
    _plain_step(
        "keep only the numbers that are at most k",
        "[y for y in ys if y <= k]",
        lambda ys, k: list(filter(k.__ge__, ys)),
    ),
    _plain_step("drop every number that occurred before in the list", "list(dict.fromkeys(ys))", _unique),
    _plain_step(
        "sort the list from the smallest to the largest",
        "sorted(ys)",
        lambda ys, k: [-y for y in sorted((-y for y in ys), reverse=True)],
    ),
    _plain_step("turn the list around", "ys[::-1]", lambda ys, k: list(reversed(ys))),
    _plain_step(
        "keep every second number, beginning with the first",
        "ys[::2]",
        lambda ys, k: [y for place, y in enumerate(ys) if place % 2 == 0],
    ),
    _plain_step(
        "replace every number by the sum of all numbers up to and including it",
        "[sum(ys[: i + 1]) for i in range(len(ys))]",
        lambda ys, k: list(itertools.accumulate(ys)),
    ),
    _plain_step(
        "replace the list by the differences of neighbours, each number minus the one before it",
        "[b - a for a, b in zip(ys, ys[1:])]",
        _differences,
    ),
)

REDUCTIONS: tuple[Reduction, ...] = (
    Reduction("the sum of the list", "sum(ys)", lambda ys, k: sum(sorted(ys))),
    Reduction("how many numbers the list holds", "len(ys)", lambda ys, k: sum(1 for _ in ys)),
    Reduction(
        "the largest number of the list, or 0 if it is empty",
        "max(ys, default=0)",
        lambda ys, k: sorted(ys)[-1] if ys else 0,
    ),
    Reduction(
        "the smallest number of the list, or 0 if it is empty",
        "min(ys, default=0)",
        lambda ys, k: sorted(ys)[0] if ys else 0,
    ),
    Reduction(
        "the largest number minus the smallest, or 0 if the list is empty",
        "max(ys, default=0) - min(ys, default=0)",
        lambda ys, k: sorted(ys)[-1] - sorted(ys)[0] if ys else 0,
    ),
    Reduction(
        "how many different numbers the list holds",
        "len(set(ys))",
        lambda ys, k: sum(1 for _ in itertools.groupby(sorted(ys))),
    ),
    Reduction("how many numbers of the list equal k", "ys.count(k)", lambda ys, k: sum(y == k for y in ys)),
    Reduction(
        "how many numbers of the list are negative",
        "sum(1 for y in ys if y < 0)",
        lambda ys, k: len([y for y in ys if not y >= 0]),
    ),
)


def draw(rng: Random, level: int, style: str = "program") -> dict[str, Any] | None:
    """A task of some steps and a result; None if its tests would all have the same result.

    Args:
        rng: the randomness.
        level: steps before the result.
        style: `program` reads standard input and prints, as coders and testers expect; `function` is called.
    """
    if style not in STYLES:
        raise ValueError(f"style={style!r}: expected one of {', '.join(STYLES)}")
    steps = [step(rng) for step in rng.sample(STEPS, level)]
    result = rng.choice(REDUCTIONS)
    inputs = _inputs(rng)
    cases = []
    for values, k in inputs:
        ys = values
        for step in steps:
            ys = step.run(ys, k)
        cases.append((values, k, result.run(ys, k)))
    # A program that prints a constant would pass too many of the tests.
    if len({value for _, _, value in cases[_EXAMPLES:]}) < 3:
        return None
    written = [_case(style, *case) for case in cases]
    return {
        "style": style,
        "entry_point": _ENTRY if style == "function" else "",
        "steps": [*(step.text for step in steps), result.text],
        "examples": written[:_EXAMPLES],
        "tests": written[_EXAMPLES:],
        "golden": _golden(style, steps, result),
    }


def _inputs(rng: Random) -> list[tuple[Values, int]]:
    """Lists of several lengths: the examples ordinary, the tests also empty, of one number, and with repetitions."""
    sizes = [rng.randint(4, 6) for _ in range(_EXAMPLES)]
    # An empty list and a single number are where programs break most.
    sizes += [0, 1, 2, *(rng.randint(3, 12) for _ in range(_TESTS - 3))]
    return [([rng.randint(-20, 30) for _ in range(size)], rng.randint(-5, 15)) for size in sizes]


def _case(style: str, values: Values, k: int, result: int) -> dict[str, Any]:
    if style == "function":
        return {"args": [values, k], "value": result}
    return {"input": f"{' '.join(map(str, values))}\n{k}", "output": str(result)}


def _golden(style: str, steps: list[Step], result: Reduction) -> str:
    lines = [f"def {_ENTRY}(ys, k):", *(f"    ys = {step.code}" for step in steps), f"    return {result.code}"]
    if style == "program":
        lines += ["", "numbers = [int(word) for word in input().split()]", f"print({_ENTRY}(numbers, int(input())))"]
    return "\n".join([*lines, ""])


def canonical(instance: Mapping[str, Any]) -> str:
    """The steps; the style and the tests make no other task."""
    return "\n".join(instance["steps"])


def question(instance: Mapping[str, Any]) -> str:
    """The task in words, with its examples."""
    *steps, result = instance["steps"]
    listed = "".join(f"{number}. {step[0].upper()}{step[1:]}.\n" for number, step in enumerate(steps, 1))
    doing = f"Do this with the list, in this order:\n{listed}The result is {result}."
    if instance["style"] == "function":
        calls = "\n".join(
            f"    >>> {_ENTRY}({', '.join(map(json.dumps, example['args']))})\n    {example['value']}"
            for example in instance["examples"]
        )
        opening = f"Write a Python function `{_ENTRY}(numbers, k)`: numbers is a list of whole numbers, k is one."
        return f"{opening} {doing}\n\n{calls}"
    shown = "\n\n".join(
        f"Example input:\n{example['input']}\nExample output:\n{example['output']}" for example in instance["examples"]
    )
    return (
        "Write a Python program. It reads two lines: a list of whole numbers with blanks between them, which may be "
        f"empty, and a whole number k. It prints one number. {doing}\n\n{shown}"
    )
