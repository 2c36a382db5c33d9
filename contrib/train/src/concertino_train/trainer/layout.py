"""Rows in places: however many rows there are, the same number of optimiser steps, equally wide on all ranks.

A step of the optimiser has a block of places for each role, and a place holds a row or padding. The invariants:
every row that is trained has exactly one place; the blocks are as wide on one rank as on any other; and a place that
is padding on all ranks is never computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from concertino_train.groups.keys import Bools, Ints
from concertino_train.groups.packing import pack


@dataclass(frozen=True, eq=False)
class Layout:
    """Where rows stand.

    Attributes:
        rows: shape (steps, width): number of the row in each place, -1 for padding.
        used: shape (steps, width): places that hold a row on this rank or on another.
        roles: shape (width,): the role of each place.
    """

    rows: Ints
    used: Bools
    roles: Ints


def layout(
    kept: Sequence[int] | Ints,
    lengths: Sequence[int] | Ints,
    roles: Sequence[int] | Ints,
    *,
    steps: int,
    number_of_roles: int = 1,
    greatest: Callable[[Ints], Ints] = lambda counts: counts,
) -> Layout:
    """Find a place for every row.

    Args:
        kept: numbers of the rows that are trained.
        lengths: tokens of each of these.
        roles: of each of these, from 0.
        steps: optimiser steps.
        number_of_roles: how many there are.
        greatest: takes an array of this rank, and gives the elementwise greatest of all ranks.
    """
    numbers, long, role = (np.asarray(values, dtype=np.int64) for values in (kept, lengths, roles))
    # Roles are packed apart: a micro-batch is computed with one adapter.
    blocks = [pack(numbers[role == n], steps, lengths=long[role == n]).rows for n in range(number_of_roles)]
    counts = greatest(np.stack([(block >= 0).sum(1) for block in blocks]))
    widths = counts.max(1)
    # One place stays even where nothing is trained, as every rank owes DDP a backward pass.
    if not widths.any():
        widths[0] = 1
    rows = np.concatenate([_widened(block, width) for block, width in zip(blocks, widths, strict=True)], axis=1)
    used = np.concatenate(
        [np.arange(width) < count[:, None] for count, width in zip(counts, widths, strict=True)], axis=1
    )
    return Layout(rows, used, np.repeat(np.arange(number_of_roles), widths))


def _widened(block: Ints, width: int) -> Ints:
    """The rows of each step first, padding behind them."""
    order = np.argsort(block < 0, axis=1, kind="stable")
    sorted_ = np.take_along_axis(block, order, 1)[:, :width]
    return np.pad(sorted_, ((0, 0), (0, width - sorted_.shape[1])), constant_values=-1)
