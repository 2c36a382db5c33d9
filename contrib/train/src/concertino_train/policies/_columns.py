"""Keys and values of a batch in which rows have different lengths, and leave.

While prompts are read, every row begins at column 0 and is padded on the right, where causal attention never looks.
While tokens are sampled, every row ends at the last column, and what stands left of it is masked:

    row 0   . . . k k k k k        starts = [3, 0, 6]
    row 1   k k k k k k k k        last = 8
    row 2   . . . . . . k k

A row that leaves gives its place to the last one, so at most one row is copied for each that leaves; columns that no
row uses any more are left out by looking at fewer. The invariant: a masked column holds finite numbers, never unset
memory, so it adds exactly nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer

ROOM = 64
"""Columns that are added at least when the buffers are full."""


class Layer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer of the network: what is seen of larger buffers.

    A window of attention, where the network has one, is kept by the mask and not by forgetting.
    """

    def __init__(self, capacity: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.buffers: list[torch.Tensor] = []
        self.rows = self.first = self.last = 0
        self._capacity = capacity

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append columns, and give all that are seen."""
        end = self.last + key_states.shape[-2]
        fresh = (key_states, value_states)
        if not self.buffers:
            self.rows = key_states.shape[0]
            self.buffers = [
                each.new_zeros((*each.shape[:2], max(end, self._capacity), each.shape[-1])) for each in fresh
            ]
        elif end > self.buffers[0].shape[-2]:
            self._grow(max(end + ROOM, end * 5 // 4))
        for buffer, each in zip(self.buffers, fresh, strict=True):
            buffer[: self.rows, :, self.last : end] = each
        return self.show(self.rows, self.first, end)

    def show(self, rows: int, first: int, last: int) -> tuple[torch.Tensor, torch.Tensor]:
        """See these rows and columns from now on, and give them."""
        self.rows, self.first, self.last = rows, first, last
        self.keys, self.values = (buffer[:rows, :, first:last] for buffer in self.buffers)
        self.dtype, self.device = self.keys.dtype, self.keys.device
        self.is_initialized = True
        return self.keys, self.values

    def _grow(self, columns: int) -> None:
        """Make room, and drop what is not seen of the rows."""
        for place, old in enumerate(self.buffers):
            new = old.new_zeros((self.rows, old.shape[1], columns, old.shape[-1]))
            new[:, :, self.first : self.last] = old[: self.rows, :, self.first : self.last]
            self.buffers[place] = new


class Prompts:
    """Prompts as they are read, each from column 0 on.

    Args:
        capacity: columns.
        prefix: what all rows begin with, read before as one row.
        rows: how many there are; needed with a prefix.
    """

    def __init__(self, capacity: int, prefix: Prompts | None = None, rows: int = 0) -> None:
        self.cache: Any = Cache(layer_class_to_replicate=partial(Layer, capacity))  # type: ignore[arg-type]
        for known in prefix.cache.layers if prefix is not None else ():
            layer = Layer()
            for old in (known.keys, known.values):
                buffer = old.new_zeros((rows, old.shape[1], capacity, old.shape[-1]))
                buffer[:, :, : old.shape[-2]] = old
                layer.buffers.append(buffer)
            layer.show(rows, 0, known.last)
            self.cache.layers.append(layer)


class Batch:
    """The rows that are sampled.

    Args:
        lengths: tokens of each that are read before the first step.

    Attributes:
        starts: the first column of each row, on the host.
    """

    def __init__(self, lengths: Sequence[int]) -> None:
        self.cache: Any = Cache(layer_class_to_replicate=Layer)
        self._columns = max(lengths)
        self.starts = [self._columns - length for length in lengths]
        self._lengths = lengths

    def take(self, prompts: Prompts, rows: Sequence[int], sources: Sequence[int]) -> None:
        """Copy prompts that were read to the right end of rows.

        Args:
            prompts: read.
            rows: places here.
            sources: the places there, one for each row.
        """
        for number, known in enumerate(prompts.cache.layers):
            if number == len(self.cache.layers):
                self.cache.layers.append(self._new_layer(known))
            layer, device = self.cache.layers[number], known.keys.device
            into, source = torch.tensor(rows, device=device), torch.tensor(sources, device=device)
            lengths = torch.tensor([self._lengths[row] for row in rows], device=device)
            columns = torch.arange(self._columns, device=device) - (self._columns - lengths)[:, None]
            columns.clamp_(0, known.keys.shape[-2] - 1)  # what is masked may hold any finite number
            for buffer, old in zip(layer.buffers, (known.keys, known.values), strict=True):
                buffer[into, :, : self._columns] = old[source[:, None], :, columns].transpose(1, 2)
            layer.show(len(self.starts), 0, self._columns)

    def _new_layer(self, known: Layer) -> Layer:
        layer = Layer()
        for old in (known.keys, known.values):
            assert old is not None
            shape = (len(self.starts), old.shape[1], self._columns + ROOM, old.shape[-1])
            layer.buffers.append(old.new_zeros(shape))
        return layer

    def leave(self, gone: Sequence[int]) -> list[tuple[int, int]]:
        """Let rows leave.

        Args:
            gone: their places, without repeats.

        Returns:
            Which rows move: their old place and their new one; all others stay.
        """
        rows = len(self.starts) - len(gone)
        leaving = set(gone)
        movers = [place for place in range(rows, len(self.starts)) if place not in leaving]
        moves = list(zip(movers, sorted(place for place in gone if place < rows), strict=True))
        for source, target in moves:
            self.starts[target] = self.starts[source]
        del self.starts[rows:]
        if rows and self.cache.layers:
            self._move(moves, rows)
        return moves

    def _move(self, moves: Sequence[tuple[int, int]], rows: int) -> None:
        first = min(self.starts)
        device = self.cache.layers[0].keys.device
        source, target = torch.tensor(moves, device=device, dtype=torch.long).reshape(-1, 2).unbind(1)
        for layer in self.cache.layers:
            if moves:
                for buffer in layer.buffers:
                    buffer[target, :, first : layer.last] = buffer[source, :, first : layer.last]
            layer.show(rows, first, layer.last)
