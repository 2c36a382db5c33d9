"""Packing: any number of rows in a constant number of optimiser steps.

How many rows a batch has depends on filters and on how many turns workflows take. If every row made its share of a
step, the number of optimiser steps, and with it the learning-rate schedule, would depend on it too. Here the number of
steps is given, and padding rows fill them up.

The invariant: every row is in exactly one place; there are `steps` steps of equal width, whatever the number of rows,
none included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from concertino import UsageError

from .keys import Bools, Ints

PADDING = -1
"""In the place of a row."""


class Packing(NamedTuple):
    """Rows in their steps.

    Attributes:
        rows: shape (steps, width): numbers of rows, `PADDING` where there is none.
    """

    rows: Ints

    @property
    def real(self) -> Bools:
        """Shape (steps, width): places that hold a row."""
        return np.asarray(self.rows != PADDING)


def pack(
    rows: Sequence[int] | Ints, steps: int, *, multiple: int = 1, lengths: Sequence[int] | Ints | None = None
) -> Packing:
    """Put rows into steps.

    Args:
        rows: numbers of the rows that are trained on, each once: `np.flatnonzero(keep)`.
        steps: optimiser steps.
        multiple: the width of a step is a multiple of this: micro-batch size times ranks.
        lengths: tokens of each row; with them, steps get about the same number of tokens. Without, rows keep their
            order.

    Raises:
        UsageError: a number below 1, a row twice, or other lengths than rows.
    """
    if steps < 1 or multiple < 1:
        raise UsageError(f"pack(steps={steps}, multiple={multiple}): expected 1 or more")
    numbers = np.asarray(rows, dtype=np.int64)
    if len(np.unique(numbers)) != len(numbers) or (len(numbers) and numbers.min() < 0):
        raise UsageError("pack: the rows must be different numbers from 0")
    width = max(1, -(-len(numbers) // (steps * multiple))) * multiple
    filled = np.full((steps, width), PADDING, dtype=np.int64)
    if lengths is None:
        filled.flat[: len(numbers)] = numbers
        return Packing(_spread(filled, len(numbers)))
    if len(lengths) != len(numbers):
        raise UsageError(f"pack: {len(lengths)} lengths for {len(numbers)} rows; expected one for each")
    _fill_evenly(filled, numbers, np.asarray(lengths, dtype=np.int64))
    return Packing(filled)


def _spread(filled: Ints, count: int) -> Ints:
    """The same rows in the same order, with the padding shared between the steps instead of in the last one."""
    steps, width = filled.shape
    per_step = [count // steps + (1 if step < count % steps else 0) for step in range(steps)]
    rows, start = filled.ravel()[:count], 0
    spread = np.full((steps, width), PADDING, dtype=np.int64)
    for step, size in enumerate(per_step):
        spread[step, :size] = rows[start : start + size]
        start += size
    return spread


def _fill_evenly(filled: Ints, numbers: Ints, lengths: Ints) -> None:
    """Longest first, each to the step that has the fewest tokens and room."""
    steps, width = filled.shape
    tokens, used = np.zeros(steps, dtype=np.int64), np.zeros(steps, dtype=np.int64)
    # Stable, so that rows of equal length fall into the same steps in every run.
    for place in np.argsort(-lengths, kind="stable").tolist():
        open_steps = np.flatnonzero(used < width)
        # lexsort's last key leads: the fewest tokens, and among equals the fewest rows.
        step = int(open_steps[np.lexsort((used[open_steps], tokens[open_steps]))[0]])
        filled[step, used[step]] = numbers[place]
        used[step] += 1
        tokens[step] += lengths[place]
