"""Keys and values of earlier sequences, kept for prompts that begin alike: the next turn of a conversation, or the
other samples of a group.

Invariant: an entry belongs to the weights that made it. Whoever changes the weights calls `clear`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from .cache import Slices

LEAST = 16
"""Tokens in common that make a copy worth its while."""


class PrefixCache:
    """Sequences with their keys and values, the least recently used dropped first.

    Args:
        limit: tokens kept at most, over all sequences; 0 keeps none.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[tuple[int, ...], Slices] = OrderedDict()
        self.tokens = 0

    def find(self, ids: Sequence[int]) -> tuple[int, Slices | None]:
        """How many tokens of a prompt are known, its last one never, with their keys and values."""
        # The first step has to read a token to get logits, so the last one never counts as known.
        prompt = tuple(ids[:-1])
        best, length = None, LEAST - 1
        # Nearly always a prompt goes on where a whole entry ends, and its last token tells most others apart.
        for known in self._entries:
            size = len(known)
            if length < size <= len(prompt) and known[-1] == prompt[size - 1] and prompt[:size] == known:
                best, length = known, size
        for known in self._entries:
            # Only what goes on as the prompt does has more in common with it.
            goes_on = length < min(len(known), len(prompt)) and known[length] == prompt[length]
            if goes_on and known[:LEAST] == prompt[:LEAST] and (common := _common(known, prompt)) > length:
                best, length = known, common
        if best is None:
            return 0, None
        self._entries.move_to_end(best)
        return length, [(keys[:, :length], values[:, :length]) for keys, values in self._entries[best]]

    def add(self, ids: Sequence[int], copy: Callable[[], Slices]) -> None:
        """Keep a sequence; those that it begins with are dropped.

        Args:
            ids: its tokens.
            copy: gives its keys and values; called only if it is kept.
        """
        entry = tuple(ids)
        if not LEAST <= len(entry) <= self._limit:
            return
        for known in [*self._entries]:
            shorter = min(len(known), len(entry))
            if known[shorter - 1] != entry[shorter - 1] or known[:shorter] != entry[:shorter]:
                continue
            if shorter == len(entry):
                self._entries.move_to_end(known)
                return
            self._drop(known)
        while self._entries and self.tokens + len(entry) > self._limit:
            self._drop(next(iter(self._entries)))
        self._entries[entry] = copy()
        self.tokens += len(entry)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self.tokens = 0

    def _drop(self, entry: tuple[int, ...]) -> None:
        del self._entries[entry]
        self.tokens -= len(entry)


def _common(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Tokens that two sequences have in common at their beginning."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
