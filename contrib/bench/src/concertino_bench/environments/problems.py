"""Problems of arithmetic and counting with exact answers, and a script for each that finds the answer by trying out.

The invariant: the answer comes from a formula, the script counts or tries; they share nothing but the numbers, so that
one checks the other. A problem of level n has n parts; its answer is the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import comb, gcd
from random import Random
from typing import Any, NamedTuple

LEVELS = range(1, 5)


class Part(NamedTuple):
    """One quantity: what it is, in words, its value, and statements that leave the value in `part`."""

    text: str
    value: Fraction
    script: str


def _divisible(rng: Random) -> Part:
    top, one, other = rng.randint(200, 3000), rng.randint(3, 12), rng.randint(13, 29)
    both = one * other // gcd(one, other)
    text = f"the number of whole numbers from 1 to {top} that are divisible by {one} or by {other}"
    script = f"part = sum(1 for n in range(1, {top} + 1) if n % {one} == 0 or n % {other} == 0)"
    return Part(text, Fraction(top // one + top // other - top // both), script)


def _remainder(rng: Random) -> Part:
    base, power, modulus = rng.randint(2, 19), rng.randint(20, 400), rng.randint(23, 997)
    text = f"the remainder of {base} to the power of {power} when it is divided by {modulus}"
    script = f"part = 1\nfor _ in range({power}):\n    part = part * {base} % {modulus}"
    return Part(text, Fraction(pow(base, power, modulus)), script)


def _multiples(rng: Random) -> Part:
    step, top = rng.randint(3, 17), rng.randint(300, 5000)
    count = (top - 1) // step
    text = f"the sum of all positive multiples of {step} below {top}"
    return Part(text, Fraction(step * count * (count + 1) // 2), f"part = sum(range({step}, {top}, {step}))")


def _ways(rng: Random) -> Part:
    right, up = rng.randint(3, 8), rng.randint(3, 8)
    across, along = rng.randint(1, right - 1), rng.randint(1, up - 1)
    value = comb(right + up, up) - comb(across + along, along) * comb(right - across + up - along, up - along)
    text = (
        f"the number of ways from (0, 0) to ({right}, {up}) by steps of one to the right or one up that do not touch "
        f"the point ({across}, {along})"
    )
    script = (
        f"ways = [[0] * {up + 1} for _ in range({right + 1})]\n"
        f"for x in range({right + 1}):\n    for y in range({up + 1}):\n"
        f"        come = (ways[x - 1][y] if x else 0) + (ways[x][y - 1] if y else 0)\n"
        f"        ways[x][y] = 0 if (x, y) == ({across}, {along}) else 1 if x == y == 0 else come\n"
        f"part = ways[{right}][{up}]"
    )
    return Part(text, Fraction(value), script)


def _dice(rng: Random) -> Part:
    sides = rng.randint(4, 20)
    least = rng.randint(sides // 2, 2 * sides)
    below = sum(max(0, min(sides, least - 1 - first)) for first in range(1, sides + 1))
    text = f"the probability that two fair dice with {sides} sides each, numbered from 1, show a sum of {least} or more"
    script = (
        f"faces = range(1, {sides + 1})\n"
        f"part = Fraction(sum(a + b >= {least} for a in faces for b in faces), {sides * sides})"
    )
    return Part(text, Fraction(sides * sides - below, sides * sides), script)


def _zeros(rng: Random) -> Part:
    top = rng.randint(50, 700)
    value, power = 0, 5
    while power <= top:
        value, power = value + top // power, power * 5
    text = f"the number of zeros at the end of {top}!, the product of the whole numbers from 1 to {top}"
    script = (
        f"product = 1\nfor n in range(1, {top + 1}):\n    product *= n\n"
        "part = 0\nwhile product % 10 == 0:\n    product //= 10\n    part += 1"
    )
    return Part(text, Fraction(value), script)


def _farm(rng: Random) -> Part:
    hens, goats = rng.randint(3, 60), rng.randint(3, 60)
    heads, legs = hens + goats, 2 * hens + 4 * goats
    text = f"the number of goats on a farm that has only hens and goats, {heads} heads and {legs} legs"
    script = f"part = next(g for g in range({heads + 1}) if 4 * g + 2 * ({heads} - g) == {legs})"
    return Part(text, Fraction(goats), script)


def _taps(rng: Random) -> Part:
    one, other = rng.sample(range(2, 40), 2)
    text = (
        f"the number of hours that two taps need together for a tank which the first alone fills in {one} hours and "
        f"the second alone in {other} hours"
    )
    script = (
        f"litres = {one} * {other}  # a tank that both fill by whole litres an hour\n"
        f"part = Fraction(litres, litres // {one} + litres // {other})"
    )
    return Part(text, 1 / (Fraction(1, one) + Fraction(1, other)), script)


FAMILIES: tuple[Callable[[Random], Part], ...] = (
    _divisible,
    _remainder,
    _multiples,
    _ways,
    _dice,
    _zeros,
    _farm,
    _taps,
)


def draw(rng: Random, level: int) -> dict[str, Any]:
    """A problem of some parts, each of another family."""
    parts = [family(rng) for family in rng.sample(FAMILIES, level)]
    answer = sum((part.value for part in parts), Fraction(0))
    lines = ["from fractions import Fraction", "total = Fraction(0)"]
    for part in parts:
        lines += [part.script, "total += part"]
    return {
        "parts": [part.text for part in parts],
        "answer": str(answer),
        "script": "\n".join([*lines, "print(total)"]),
    }


def canonical(instance: Mapping[str, Any]) -> str:
    """The same text for any order of the parts."""
    return "\n".join(sorted(instance["parts"]))


def question(instance: Mapping[str, Any]) -> str:
    """The problem in words."""
    parts = instance["parts"]
    if len(parts) == 1:
        return f"What is {parts[0]}? Give a whole number, or a fraction such as 3/7."
    named = [f"{letter} is {part}." for letter, part in zip("ABCD", parts, strict=False)]
    total = " + ".join("ABCD"[: len(parts)])
    return " ".join([*named, f"What is {total}? Give a whole number, or a fraction such as 3/7."])
