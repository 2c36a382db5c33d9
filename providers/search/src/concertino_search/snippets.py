"""Snippets: the part of a passage that says most about a query, when the whole is too long to be shown.

Whole sentences are kept where they fit. An ellipsis marks what is left out, so that a snippet never passes for the
passage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

_END = re.compile(r"(?:[.!?。！？]+(?=\s)|\n)\s*")
ELLIPSIS = "…"
Sentence = tuple[str, frozenset[str]]
"""A sentence with the blanks after it, and its terms."""


def sentences(text: str, terms: Callable[[str], list[str]]) -> list[Sentence]:
    """The sentences of a text, which together are the text."""
    ends = [0, *(found.end() for found in _END.finditer(text)), len(text)]
    parts = [text[start:end] for start, end in pairwise(ends) if start < end]
    return [(part, frozenset(terms(part))) for part in parts]


def snippet(text: str, wanted: Collection[str], limit: int, split: Callable[[str], Sequence[Sentence]]) -> str:
    """The text, or the run of its sentences that holds the most of the wanted terms, the first among equals.

    Args:
        text: of a passage.
        wanted: terms of the query.
        limit: the longest result, in characters.
        split: gives the sentences, with terms as the wanted ones.
    """
    if len(text) <= limit:
        return text
    # An ellipsis at each end.
    room = max(1, limit - 2)
    parts = split(text)
    held = [terms.intersection(wanted) for _, terms in parts]
    lengths = [len(part) for part, _ in parts]
    found: tuple[int, int, int] = (-1, 0, 1)
    end, size = 0, 0
    for start in range(len(parts)):
        if end <= start:
            end, size = start, 0
        while end < len(parts) and (end == start or size + len(parts[end][0].rstrip()) <= room):
            size += lengths[end]
            end += 1
        score = len(set().union(*held[start:end]))
        if score > found[0]:
            found = score, start, end
        size -= lengths[start]
    _, start, end = found
    shown = "".join(part for part, _ in parts[start:end]).strip()[:room].strip()
    return f"{ELLIPSIS if start else ''}{shown}{ELLIPSIS}" if start or len(shown) < len(text) else shown
