"""Keys and values of a batch whose rows have different lengths, and come and leave.

While prompts are read, every row begins at column 0 and is padded on the right, where causal attention never looks.
While tokens are sampled, every row ends at the same column, and what stands left of it is masked:

    row 0   . . . k k k k k        starts = [3, 0, 6]
    row 1   k k k k k k k k        last = 8
    row 2   . . . . . . k k

So every attention of transformers can be used as it is. A row that leaves gives its place to the last one, so at most
one row is copied for each that leaves. Columns that no row uses any more are hidden by looking at fewer; their memory
is reused when the buffers are full.

The invariant: the columns left of a row are zero and never unset memory, so a masked column adds exactly nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

ROOM = 64
"""Columns that are added at least when the buffers are full."""
Slices = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of one sequence, layer by layer: (heads, tokens, size of a head)."""


class CacheLayer(DynamicLayer):
    """Keys and values of one layer of the network: what is visible of larger buffers.

    A window of attention, where the network has one, is kept by the mask and not by forgetting.
    """

    def __init__(self, capacity: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers does not annotate it
        self.buffers: list[torch.Tensor] = []
        self.rows = self.first = self.last = 0
        self._capacity = capacity

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append columns, and return all that are visible."""
        end = self.last + key_states.shape[-2]
        if not self.buffers:
            self.allocate(key_states, value_states, len(key_states), max(end, self._capacity))
            self.rows = len(key_states)
        elif end > self.columns:
            # A quarter more each time, so that what is copied stays in proportion to what is read.
            self.resize(len(self.buffers[0]), max(end + ROOM, end * 5 // 4))
        for buffer, fresh in zip(self.buffers, (key_states, value_states), strict=True):
            buffer[: self.rows, :, self.last : end] = fresh
        return self.show(self.rows, self.first, end)

    @property
    def columns(self) -> int:
        """Columns of the buffers."""
        return self.buffers[0].shape[-2]

    def allocate(self, keys: torch.Tensor, values: torch.Tensor, rows: int, columns: int) -> None:
        """Make empty buffers for keys and values like these."""
        # Attention multiplies masked columns by 0, and unset memory may hold NaN, which survives that.
        self.buffers = [each.new_zeros((rows, each.shape[-3], columns, each.shape[-1])) for each in (keys, values)]

    def resize(self, rows: int, columns: int, shift: int = 0) -> None:
        """Replace the buffers by others; what is visible moves `shift` columns to the right."""
        old = self.buffers
        self.allocate(old[0], old[1], rows, columns)
        for buffer, each in zip(self.buffers, old, strict=True):
            place = slice(self.first + shift, self.last + shift)
            buffer[: self.rows, :, place] = each[: self.rows, :, self.first : self.last]

    def show(self, rows: int, first: int, last: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Make these rows and columns visible, and return them."""
        self.rows, self.first, self.last = rows, first, last
        self.keys, self.values = (buffer[:rows, :, first:last] for buffer in self.buffers)
        self.dtype, self.device = self.keys.dtype, self.keys.device
        self.is_initialized = True
        return self.keys, self.values


def prompt_cache(capacity: int, prefix: Slices | None = None, rows: int = 1) -> Any:
    """A cache to read prompts into, all of them from column 0 on.

    Args:
        capacity: columns.
        prefix: keys and values with which all rows begin.
        rows: how many there are; needed with a prefix.
    """
    # transformers asks for a class and only calls it.
    cache = Cache(layer_class_to_replicate=cast("type[CacheLayer]", partial(CacheLayer, capacity)))
    for keys, values in prefix or ():
        layer = CacheLayer()
        layer.allocate(keys, values, rows, max(capacity, keys.shape[-2]))
        for buffer, known in zip(layer.buffers, (keys, values), strict=True):
            buffer[:, :, : known.shape[-2]] = known
        layer.show(rows, 0, keys.shape[-2])
        cache.layers.append(layer)
    return cache


def behind_prefixes(prefixes: Sequence[Slices], columns: int) -> tuple[Any, list[int]]:
    """A cache to read prompts into that begin each with a prefix of its own; all prefixes end at one column.

    Args:
        prefixes: keys and values with which each row begins; none is empty.
        columns: to be read behind them.

    Returns:
        The cache, and the first column of each row.
    """
    cache = Cache(layer_class_to_replicate=CacheLayer)
    sizes = [prefix[0][0].shape[-2] for prefix in prefixes]
    end = max(sizes)
    for number, (keys, values) in enumerate(prefixes[0]):
        layer = CacheLayer()
        layer.allocate(keys, values, len(prefixes), end + columns)
        for row, (prefix, size) in enumerate(zip(prefixes, sizes, strict=True)):
            for buffer, known in zip(layer.buffers, prefix[number], strict=True):
                buffer[row, :, end - size : end] = known
        layer.show(len(prefixes), 0, end)
        cache.layers.append(layer)
    return cache, [end - size for size in sizes]


def copy_row(cache: Any, row: int, begin: int, end: int) -> Slices:
    """Keys and values of some visible columns of a row, in memory of their own."""
    return [(layer.keys[row, :, begin:end].clone(), layer.values[row, :, begin:end].clone()) for layer in cache.layers]


class BatchCache:
    """The cache of the rows that are sampled.

    Attributes:
        cache: what the network reads and writes.
        starts: the first column of each row.
        last: columns that are filled; all rows end here.
    """

    def __init__(self) -> None:
        self._room = (0, 0)
        self._clear()

    def _clear(self) -> None:
        self.cache: Any = Cache(layer_class_to_replicate=CacheLayer)
        self.starts: list[int] = []
        self.last = 0
        self._starts: torch.Tensor | None = None

    @property
    def first(self) -> int:
        """The first column that is visible."""
        return min(self.starts, default=self.last)

    def new_prompts(self, capacity: int, prefix: Slices | None = None, rows: int = 1) -> Any:
        """A cache to read prompts into, which then `join`; see `prompt_cache`."""
        return prompt_cache(capacity, prefix, rows)

    def reserve(self, rows: int, columns: int) -> None:
        """Say how large an empty batch will become, so that nothing is copied as rows join."""
        self._room = (rows, columns)

    def join(
        self, prompts: Any, sources: Sequence[int], lengths: Sequence[int], begins: Sequence[int] | None = None
    ) -> None:
        """Add rows that were read elsewhere.

        Args:
            prompts: the cache that they were read into.
            sources: their places in it; one may be named more than once.
            lengths: tokens of each.
            begins: the column in which each begins; 0 by default.
        """
        count, self._starts = len(self.starts), None
        rows = max(count + len(lengths), self._room[0])
        last = max([self.last, *lengths, self._room[1] if not count else 0])
        shift = last - self.last if count else 0
        # A layer that has no prompts to take still has to make room: all layers end at one column.
        for number in range(max(len(prompts.layers), len(self.cache.layers))):
            if number == len(self.cache.layers):
                layer = CacheLayer()
                layer.allocate(prompts.layers[number].keys, prompts.layers[number].values, rows, last + ROOM)
                self.cache.layers.append(layer)
            else:
                layer = self.cache.layers[number]
                if shift or rows > len(layer.buffers[0]) or last >= layer.columns:
                    layer.resize(rows, last + ROOM, shift)
            if number < len(prompts.layers):
                self._copy(prompts.layers[number], layer, (sources, lengths, begins or [0] * len(lengths)), last)
        self.starts = [*(start + shift for start in self.starts), *(last - length for length in lengths)]
        self._show(last)

    def _copy(
        self, known: CacheLayer, layer: CacheLayer, rows: tuple[Sequence[int], Sequence[int], Sequence[int]], last: int
    ) -> None:
        """Copy rows of prompts to the right end of new rows, and zeros left of them."""
        device, count = known.buffers[0].device, len(self.starts)
        source, length, begin = torch.tensor(rows, device=device)[:, :, None]
        columns = torch.arange(last, device=device) - (last - length)
        lengths = rows[1]
        outside = (columns < 0)[:, None, :, None] if min(lengths) < last else None
        # Places left of a row read its first column; they are zeroed below.
        columns = columns.clamp_min(0) + begin
        for buffer, old in zip(layer.buffers, (known.keys, known.values), strict=True):
            assert old is not None
            fresh = old[source, :, columns].transpose(1, 2)
            if outside is not None:
                fresh.masked_fill_(outside, 0)
            buffer[count : count + len(lengths), :, :last] = fresh

    def leave(self, gone: Sequence[int]) -> list[int]:
        """Let rows leave.

        Args:
            gone: their places, without repeats.

        Returns:
            For each place that is left, which row stands there now, by its old place.
        """
        rows, leaving = len(self.starts) - len(gone), set(gone)
        if not rows:
            self._clear()
            return []
        movers = [place for place in range(rows, len(self.starts)) if place not in leaving]
        targets = sorted(place for place in gone if place < rows)
        kept = list(range(rows))
        for source, target in zip(movers, targets, strict=True):
            kept[target] = source
        if movers and self.cache.layers:
            device = self.cache.layers[0].buffers[0].device
            source_at, target_at = torch.tensor([movers, targets], device=device)
            for layer in self.cache.layers:
                for buffer in layer.buffers:
                    buffer[target_at, :, : self.last] = buffer[source_at, :, : self.last]
        self.starts, self._starts = [self.starts[place] for place in kept], None
        self._show(self.last)
        return kept

    def make_room(self) -> None:
        """See to it that the next column can be written; hidden columns are dropped where that is not so."""
        if not self.cache.layers or self.last < self.cache.layers[0].columns:
            return
        first, columns = self.first, self.last - self.first
        for layer in self.cache.layers:
            layer.resize(len(self.starts), max(columns + ROOM, columns * 5 // 4), -first)
        self.starts, self._starts = [start - first for start in self.starts], None
        self._show(columns)

    def mask(self, device: torch.device) -> torch.Tensor | None:
        """Which visible columns each row may look at, the next one included; None where all may look at all."""
        first = self.first
        # Without a mask torch may take its fast attention kernels.
        if first == max(self.starts):
            return None
        return torch.arange(first, self.last + 1, device=device) >= self._starts_on(device)[:, None]

    def positions(self, device: torch.device) -> torch.Tensor:
        """The position of each row's next token."""
        return self.last - self._starts_on(device)

    def advance(self) -> None:
        """A step has written the next column."""
        self.last += 1

    def restore(self) -> None:
        """Forget what a failed step has written."""
        self._show(self.last)

    def _starts_on(self, device: torch.device) -> torch.Tensor:
        if self._starts is None:
            self._starts = torch.tensor(self.starts, device=device)
        return self._starts

    def _show(self, last: int) -> None:
        self.last = last
        first = self.first
        for layer in self.cache.layers:
            layer.show(len(self.starts), first, last)


class SoloCache(BatchCache):
    """The cache of a model that cannot be batched: one row at a time, in whatever form the model keeps its state."""

    def __init__(self, config: Any) -> None:
        self._config = config
        super().__init__()

    def new_prompts(self, capacity: int, prefix: Slices | None = None, rows: int = 1) -> Any:
        """The model's own kind of cache; it begins with nothing."""
        return DynamicCache(config=self._config)

    def join(
        self, prompts: Any, sources: Sequence[int], lengths: Sequence[int], begins: Sequence[int] | None = None
    ) -> None:
        """Take the one row over."""
        self.cache, self.starts, self.last, self._starts = prompts, [0], lengths[0], None

    def make_room(self) -> None:
        """The model's own cache grows on its own."""

    def restore(self) -> None:
        """Nothing can be saved of a failed step; its row leaves."""
