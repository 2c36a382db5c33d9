"""Keys and values of a batch whose rows have different lengths, and come and go.

All rows end at the same column; a shorter row begins further right, and what stands left of it is masked. So every
attention of transformers can be used as it is: with a two-dimensional mask and explicit positions.

    row 0   . . . k k k k k        starts = [3, 0, 6]
    row 1   k k k k k k k k        columns = 8
    row 2   . . . . . . k k

Invariant: the columns left of a row are zero and never unset memory, so that a masked column adds exactly nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

ROOM = 64
"""Columns that are added at least when a layer's buffer is full."""


class GrowingLayer(DynamicLayer):
    """A layer that appends in place: `keys` and `values` are views of the filled columns of larger buffers.

    A window of attention, where the model has one, is kept by the mask and not by forgetting.
    """

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()
        self._buffers: list[torch.Tensor] = []
        self.length = 0

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append columns, and give all of them."""
        end = self.length + key_states.shape[-2]
        if not self._buffers or end > self._buffers[0].shape[-2]:
            room = max(end + ROOM, end * 5 // 4)
            self._buffers = [
                _resized(old, fresh, self.length, room)
                for old, fresh in zip(self._buffers or (None, None), (key_states, value_states), strict=True)
            ]
        for buffer, fresh in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, self.length : end] = fresh
        return self.show(end)

    def hold(self, keys: torch.Tensor, values: torch.Tensor, length: int) -> None:
        """Use these buffers, whose first `length` columns are filled."""
        self._buffers = [keys, values]
        self.show(length)

    def show(self, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Take the first `length` columns for the filled ones, and give them."""
        keys, values = (buffer[:, :, :length] for buffer in self._buffers)
        self.length, self.keys, self.values = length, keys, values
        self.dtype, self.device = keys.dtype, keys.device
        self.is_initialized = True
        return keys, values


def _resized(old: torch.Tensor | None, fresh: torch.Tensor, length: int, room: int) -> torch.Tensor:
    shape = (*fresh.shape[:2], room, fresh.shape[-1])
    buffer = fresh.new_zeros(shape)
    if old is not None:
        buffer[:, :, :length] = old[:, :, :length]
    return buffer


Slices = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of one sequence, layer by layer: (heads, tokens, size of a head)."""


def new_cache(prefix: Slices | None = None) -> Any:
    """An empty cache, or one row that begins with known keys and values."""
    cache = Cache(layer_class_to_replicate=GrowingLayer)
    for keys, values in prefix or ():
        layer = GrowingLayer()
        layer.update(keys[None], values[None])
        cache.layers.append(layer)
    return cache


def copy_row(cache: Any, row: int, begin: int, end: int) -> Slices:
    """Keys and values of some columns of a row, in memory of their own."""
    return [(layer.keys[row, :, begin:end].clone(), layer.values[row, :, begin:end].clone()) for layer in cache.layers]


class BatchCache:
    """The cache of the rows that generate.

    Attributes:
        starts: the first column of each row.
        columns: columns that are filled; all rows end here.
    """

    def __init__(self) -> None:
        self.cache = self.fresh()
        self.starts: list[int] = []
        self.columns = 0

    def fresh(self, prefix: Slices | None = None) -> Any:
        """A cache to read a prompt into, which may begin with known keys and values."""
        return new_cache(prefix)

    def join(self, other: Any, rows: Sequence[int], lengths: Sequence[int]) -> None:
        """Add rows that were read elsewhere, where they begin at column 0.

        Args:
            other: the cache that they were read into.
            rows: their places in it; one may be named more than once.
            lengths: tokens of each.
        """
        columns = max([self.columns, *lengths])
        count = len(self.starts)
        for number, source in enumerate(other.layers):
            if number == len(self.cache.layers):
                self.cache.layers.append(GrowingLayer())
            target = self.cache.layers[number]
            pair = []
            for old, fresh in ((target.keys, source.keys), (target.values, source.values)):
                buffer = fresh.new_zeros((count + len(rows), fresh.shape[1], columns + ROOM, fresh.shape[-1]))
                if count:
                    buffer[:count, :, columns - self.columns : columns] = old
                for place, (row, length) in enumerate(zip(rows, lengths, strict=True), count):
                    buffer[place, :, columns - length : columns] = fresh[row, :, :length]
                pair.append(buffer)
            target.hold(*pair, columns)
        self.starts = [*(start + columns - self.columns for start in self.starts), *(columns - n for n in lengths)]
        self.columns = columns

    def keep(self, rows: Sequence[int]) -> None:
        """Keep some rows, and drop the columns that none of them uses."""
        if not rows:
            self.cache, self.starts, self.columns = self.fresh(), [], 0
            return
        trim = min(self.starts[row] for row in rows)
        columns = self.columns - trim
        for layer in self.cache.layers:
            pair = []
            for old in (layer.keys, layer.values):
                buffer = old.new_zeros((len(rows), old.shape[1], columns + ROOM, old.shape[-1]))
                for place, row in enumerate(rows):
                    buffer[place, :, :columns] = old[row, :, trim:]
                pair.append(buffer)
            layer.hold(*pair, columns)
        self.starts = [self.starts[row] - trim for row in rows]
        self.columns = columns

    def mask(self, device: torch.device) -> torch.Tensor | None:
        """Which columns each row may look at, the next one included; None where all may look at all."""
        if not any(self.starts):
            return None
        columns = torch.arange(self.columns + 1, device=device)
        return (columns >= torch.tensor(self.starts, device=device)[:, None]).long()

    def positions(self, device: torch.device) -> torch.Tensor:
        """The position of each row's next token."""
        return torch.tensor([[self.columns - start] for start in self.starts], device=device)

    def advance(self) -> None:
        """A step has written the next column."""
        self.columns += 1

    def restore(self) -> None:
        """Forget what a failed step has written."""
        for layer in self.cache.layers:
            layer.show(self.columns)


class SoloCache(BatchCache):
    """The cache of a model that cannot be batched: one row at a time, in whatever form the model keeps its state.

    Args:
        config: of the model.
    """

    def __init__(self, config: Any) -> None:
        self._config = config
        super().__init__()

    def fresh(self, prefix: Slices | None = None) -> Any:
        """The model's own kind of cache; it begins with nothing."""
        return DynamicCache(config=self._config)

    def join(self, other: Any, rows: Sequence[int], lengths: Sequence[int]) -> None:
        """Take the one row over."""
        self.cache, self.starts, self.columns = other, [0], lengths[0]

    def restore(self) -> None:
        """Nothing can be saved of a failed step; its row leaves."""
