"""Actions as callers write them: lists, JSON in a text, or the plainest text that has one reading.

Nothing is guessed: a word that is not a move, a value outside the grid, an empty list are unreadable, and the message
says which element it is. Reading never evaluates anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from concertino.text.json import ReadingError, read_json

from .acting import UnreadableAction

MOVES = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
"""Row and column of a step."""
_WORDS = {"UP": "U", "DOWN": "D", "LEFT": "L", "RIGHT": "R", **{move: move for move in MOVES}}
_EXPECTED_MOVES = 'expected a list of "U", "D", "L", "R", such as ["U", "R"]'
_MOST_CHARS = 100_000
_LETTERS = re.compile(r"[UDLRudlr]+")
_PYTHON_LIST = re.compile(r"\[\s*'[A-Za-z]+'(?:\s*,\s*'[A-Za-z]+')*\s*\]")
_LIST_OF_WORDS = re.compile(r"[A-Za-z]+(?:[\s,;]+[A-Za-z]+)*")

# Digits and exponents are bounded: the exact fraction of 1e999999999 would fill the memory.
_NUMBER = re.compile(r"[-+]?(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][-+]?\d{1,2})?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:,\d{3}){1,19}(?:\.\d{0,60})?")
_FRACTION = re.compile(r"([-+]?)(?:(\d{1,60})\s*/\s*(\d{1,60})|\\[dt]?frac\{(-?\d{1,60})\}\{(\d{1,60})\})")


class Fill(NamedTuple):
    """A value for a cell, counted from 1; 0 empties it."""

    row: int
    column: int
    value: int


def read_moves(action: Any, most: int) -> str:
    """Moves as a text of U, D, L and R.

    Args:
        action: a list of moves or words, or a text that is one.
        most: how many there may be.

    Raises:
        UnreadableAction: says which element is not a move.
    """
    listed = _listed(action, _EXPECTED_MOVES) if not _is_letters(action) else list(action.strip())
    if len(listed) > most:
        raise UnreadableAction(f"the action has {len(listed)} moves; at most {most} are taken at once")
    moves: list[str] = []
    for place, word in enumerate(listed, 1):
        move = _WORDS.get(word.strip().upper()) if isinstance(word, str) else None
        if move is None:
            raise UnreadableAction(
                f"element {place} of the action is {_shown(word)}, which is not a move; {_EXPECTED_MOVES}"
            )
        moves.append(move)
    if not moves:
        raise UnreadableAction(f"the action holds no move; {_EXPECTED_MOVES}")
    return "".join(moves)


def read_fills(action: Any, size: int) -> tuple[list[Fill], bool]:
    """Values for cells, and whether the action was a whole grid.

    Args:
        action: a list of [row, column, value], counted from 1, or a grid as a list of rows; or a text with one as JSON.
        size: rows of the grid.

    Raises:
        UnreadableAction: says which element is wrong.
    """
    expected = (
        f"expected a list of [row, column, value] with numbers from 1 to {size}, or {size} rows of {size} numbers"
    )
    listed = _listed(action, expected)
    if not listed:
        raise UnreadableAction(f"the action is empty; {expected}")
    # `type`, not isinstance: a cell cannot hold true.
    if len(listed) == 3 and all(type(value) is int for value in listed):
        listed = [listed]  # one fill without its outer list
    whole = len(listed) == size and all(isinstance(row, Sequence) and len(row) == size for row in listed)
    if not whole and len(listed) > size * size:
        raise UnreadableAction(f"the action has {len(listed)} fills, and the grid {size * size} cells; {expected}")
    if whole:
        rows = [[row, column, value] for row, line in enumerate(listed, 1) for column, value in enumerate(line, 1)]
        return [_fill(cell, place, size, expected, least=1) for place, cell in enumerate(rows, 1)], True
    return [_fill(cell, place, size, expected, least=0) for place, cell in enumerate(listed, 1)], False


def read_number(text: Any) -> Fraction | None:
    """The number that a text is: whole, decimal or a fraction, maybe with `$`, thousands marks or `\\boxed{}`.

    None for anything else: nothing is computed, and a number in a sentence is not looked for.
    """
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        return None
    if isinstance(text, (int, float)):
        return Fraction(text) if abs(text) < float("inf") else None
    plain = text.strip()[:400].strip("$ \n").removesuffix(".").strip()
    if plain.startswith("\\boxed{") and plain.endswith("}"):
        plain = plain[len("\\boxed{") : -1].strip()
    if found := _FRACTION.fullmatch(plain):
        sign, *parts = found.groups()
        above, below = [int(part) for part in parts if part is not None]
        return None if below == 0 else Fraction(-above if sign == "-" else above, below)
    if _GROUPED.fullmatch(plain):
        plain = plain.replace(",", "")
    return Fraction(plain) if _NUMBER.fullmatch(plain) else None


def _fill(cell: Any, place: int, size: int, expected: str, least: int) -> Fill:
    values = cell
    if isinstance(cell, dict) and set(cell) == {"row", "column", "value"}:
        values = [cell["row"], cell["column"], cell["value"]]
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) != 3:
        raise UnreadableAction(f"element {place} of the action is {_shown(cell)}; {expected}")
    if not all(type(value) is int for value in values):
        raise UnreadableAction(f"element {place} of the action is {_shown(cell)}, not whole numbers; {expected}")
    row, column, value = values
    if not (1 <= row <= size and 1 <= column <= size and least <= value <= size):
        raise UnreadableAction(f"element {place} of the action, {_shown(cell)}, is outside of the grid; {expected}")
    return Fill(row, column, value)


def _is_letters(action: Any) -> bool:
    """`URRD`; a word such as `UP` holds other letters, and `RULED` too, so nothing has two readings."""
    return isinstance(action, str) and _LETTERS.fullmatch(action.strip()) is not None


def _listed(action: Any, expected: str) -> list[Any]:
    """An action as a list."""
    if isinstance(action, (list, tuple)):
        return list(action)
    if not isinstance(action, str):
        raise UnreadableAction(f"the action is {_shown(action)}; {expected}")
    text = action.strip()
    if len(text) > _MOST_CHARS:
        raise UnreadableAction(f"the action has {len(text)} characters; {expected}")
    if _LIST_OF_WORDS.fullmatch(text):
        return re.split(r"[\s,;]+", text)
    if _PYTHON_LIST.fullmatch(text):
        return re.findall(r"[A-Za-z]+", text)  # what a script prints that does not think of JSON
    try:
        # Strict: a repaired list could be another action than the one that was meant.
        value = read_json(text, strict=True, expect="any").value
    except ReadingError as error:
        inside = text[1:-1].strip() if text[:1] == "[" and text[-1:] == "]" else ""
        # `[U, R]` without quotes has one reading.
        if _LIST_OF_WORDS.fullmatch(inside):
            return re.split(r"[\s,;]+", inside)
        raise UnreadableAction(f"the action {_shown(action)} is not a JSON list: {error}; {expected}") from None
    if not isinstance(value, list):
        raise UnreadableAction(f"the action is {_shown(value)}; {expected}")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
