"""A glossary: what topics are called, and the words that people use when they speak of them.

It is what the scorer knows of the world beside WordNet: "kubernetes" stands beside "container", and "offside" beside
"football". It holds no question and says nothing of quality.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Entry:
    """One topic.

    Attributes:
        names: noun phrases by which a description may call it; the usual one first.
        words: that occur in questions about it and seldom elsewhere.
    """

    names: tuple[str, ...]
    words: tuple[str, ...]


@cache
def _all_entries() -> tuple[Entry, ...]:
    folder = resources.files(__package__).joinpath("glossary")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".jsonl")), key=lambda each: each.name)
    lines = (line for file in files for line in file.read_text(encoding="utf-8").splitlines())
    rows = map(json.loads, filter(str.strip, lines))
    return tuple(Entry(tuple(dict.fromkeys((row["topic"], *row["names"]))), tuple(row["words"])) for row in rows)


def load_glossary(without: Collection[str] = ()) -> list[Entry]:
    """All entries but those that have one of these names."""
    kept_out = {name.lower() for name in without}
    return [entry for entry in _all_entries() if not kept_out & {name.lower() for name in entry.names}]
