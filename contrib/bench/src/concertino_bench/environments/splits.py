"""Seeded streams of instances in two splits that share none.

The invariants: instance `index` of a stream depends on its options and the index alone, in any process; and which split
an instance is for follows from a hash of its *canonical* text, which mirrored, turned or renamed copies share. So no
instance of one split is a copy of one of the other, whatever the seeds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Literal, TypeVar, get_args

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
TRAIN_SHARE = 0.7
"""Of all instances."""
_ATTEMPTS = 500
"""Draws for one instance, and instances in a row that were there before."""

T = TypeVar("T")


def split_of(canonical: str) -> Split:
    """Which split an instance is for."""
    # Not `hash`, which differs from process to process.
    digest = hashlib.blake2b(canonical.encode(), digest_size=4).digest()
    return "train" if int.from_bytes(digest) < TRAIN_SHARE * 2**32 else "test"


def draw_one(key: str, split: str, draw: Callable[[Random], T | None], canonical: Callable[[T], str]) -> T:
    """The instance of a key: the first one drawn that is for the split.

    Raises:
        ValueError: there is none in many draws; the options leave too few instances.
    """
    for attempt in range(_ATTEMPTS):
        # A text as seed is hashed by SHA-512, the same in every process; an object's `hash` is not.
        instance = draw(Random(f"{key} {attempt}"))
        if instance is not None and split_of(canonical(instance)) == split:
            return instance
    raise ValueError(f"{key}: no instance of the split {split!r} in {_ATTEMPTS} draws; choose a larger level")


def distinct(
    one: Callable[[int], T], name: Callable[[T], str], count: int | None, start: int
) -> Iterator[tuple[int, T]]:
    """Instances by index, each that was there before left out; without a count there is no end.

    Raises:
        ValueError: the options leave too few instances that differ.
    """
    seen: set[str] = set()
    index, repeats = start, 0
    while count is None or len(seen) < count:
        instance = one(index)
        # Small levels repeat instances, also as turned or renamed copies, which share the canonical text.
        text = name(instance)
        if text not in seen:
            seen.add(text)
            repeats = 0
            yield index, instance
        else:
            repeats += 1
            if repeats > _ATTEMPTS:
                raise ValueError(
                    f"{len(seen)} instances differ, and {_ATTEMPTS} more draws gave no other; expected {count}. "
                    "Ask for fewer, or choose a larger level"
                )
        index += 1


def symmetries(rows: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The eight turned and mirrored copies of a square or rectangle of characters."""
    for _ in range(4):
        yield rows
        yield rows[::-1]
        rows = tuple("".join(column) for column in zip(*rows[::-1], strict=True))
