"""Passages: what is searched and shown, and the files that hold them.

A *passage* is the unit of retrieval. A store keeps all passages of an index in one JSON Lines file, with the place of
each line and a sorted table of hashed ids beside it, both mapped into memory: opening reads no passage, and several
processes share the pages.

Invariant: a store is written once and only read afterwards; position `i` is the same passage for every part of an
index.
"""

from __future__ import annotations

import functools
import hashlib
import json
import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

_LINES, _STARTS, _IDS = "passages.jsonl", "starts.npy", "ids.npy"
_CACHED = 20_000
"""Parsed passages that an open store keeps."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One passage.

    Attributes:
        id: unique in its corpus; what a citation names.
        title: of the passage or of the document that it belongs to; may be empty.
        text: the passage itself.
    """

    id: str
    title: str
    text: str

    @property
    def indexed(self) -> str:
        """What is searched: the title and the text."""
        return f"{self.title}\n{self.text}" if self.title else self.text


class PassageStore:
    """The passages of an index, by position and by id."""

    def __init__(self, folder: Path) -> None:
        # `asarray` keeps the mapping without np.memmap's cost for each access.
        self._starts: npt.NDArray[np.int64] = np.asarray(np.load(folder / _STARTS, mmap_mode="r"))
        self._ids: npt.NDArray[np.uint64] = np.asarray(np.load(folder / _IDS, mmap_mode="r"))
        with (folder / _LINES).open("rb") as file:
            self._lines = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._count = len(self._starts) - 1
        # Made for each store and not by a decorator, so that the cache goes when the store does.
        self._get = functools.lru_cache(_CACHED)(self._read)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: int) -> Passage:
        if not 0 <= position < self._count:
            raise IndexError(f"position {position} of {self._count} passages")
        return self._get(position)

    def __iter__(self) -> Iterator[Passage]:
        return (self._read(position) for position in range(len(self)))

    def _read(self, position: int) -> Passage:
        line = self._lines[int(self._starts[position]) : int(self._starts[position + 1])]
        return Passage(*json.loads(line))

    def find(self, passage_id: str) -> int | None:
        """The position of an id, None if no passage has it."""
        key = _hash(passage_id)
        place = int(np.searchsorted(self._ids[0], key))
        # Two ids may share a hash.
        while place < len(self) and self._ids[0, place] == key:
            position = int(self._ids[1, place])
            if self[position].id == passage_id:
                return position
            place += 1
        return None

    @staticmethod
    def write(folder: Path, passages: Iterable[Passage]) -> int:
        """Write passages, in their order.

        Returns:
            How many there were.
        """
        starts, ids = [0], []
        with (folder / _LINES).open("wb") as file:
            for passage in passages:
                line = json.dumps([passage.id, passage.title, passage.text], ensure_ascii=False)
                starts.append(starts[-1] + file.write(line.encode("utf-8", "surrogatepass") + b"\n"))
                ids.append(_hash(passage.id))
        np.save(folder / _STARTS, np.array(starts, dtype=np.int64))
        keys = np.array(ids, dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        np.save(folder / _IDS, np.stack([keys[order], order.astype(np.uint64)]))
        return len(ids)


def _hash(passage_id: str) -> int:
    digest = hashlib.blake2b(passage_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
