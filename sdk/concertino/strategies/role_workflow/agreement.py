"""Whether two roles mean the same: answers by value, printed output line by line. Never evaluates anything."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

_NUMBER = re.compile(r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,3})?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3}){1,13}(?:\.\d{0,40})?")
_FRACTION = re.compile(r"([-+]?\d{1,40}) ?/ ?(\d{1,40})")
_LATEX_FRACTION = re.compile(r"([-+]?)\\[dt]?frac\{(\d{1,40})\}\{(\d{1,40})\}")
_LONGEST = 20_000


def same_answer(one: Any, other: Any) -> bool:
    """Whether two answers are equal: as numbers where both are numbers, else as text without case and spaces.

    `1/2` and `0.5` are the same, `1,000` and `1000`, `$7$` and `7.0`; `2+2` and `4` are not: nothing is computed.
    """
    if one is None or other is None:
        return False
    left, right = _plain(one), _plain(other)
    if not left or not right:
        return False
    a, b = _number(left), _number(right)
    if a is not None and b is not None:
        return a[0] * b[1] == b[0] * a[1]
    return _squeezed(left) == _squeezed(right)


def same_output(printed: str, expected: str) -> bool:
    """Whether a program printed what a test expects; blanks at the ends of lines and of the text do not count."""
    return [line.rstrip() for line in printed.strip().splitlines()] == [
        line.rstrip() for line in expected.strip().splitlines()
    ]


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.strip()[:_LONGEST].strip("$ \n").removesuffix(".").strip()
    if text.startswith("\\boxed{") and text.endswith("}"):
        text = text[len("\\boxed{") : -1].strip()
    return text


def _number(text: str) -> tuple[Decimal, Decimal] | None:
    """Numerator and denominator."""
    if found := _LATEX_FRACTION.fullmatch(text) or _FRACTION.fullmatch(text):
        *sign, above, below = found.groups()
        bottom = Decimal(below)
        return (Decimal("".join([*sign, above])), bottom) if bottom else None
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text), Decimal(1)
    except InvalidOperation:
        return None


def _squeezed(text: str) -> str:
    return "".join(text.casefold().split())
