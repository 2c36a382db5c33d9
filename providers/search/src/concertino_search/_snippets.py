"""Snippets: the part of a passage that says most about a query, when the whole is too long to be shown.

Whole sentences are kept where they fit. An ellipsis marks what is left out, so that a snippet never passes for the
passage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

_SENTENCE = re.compile(r".+?(?:[.!?。！？](?=\s)|\n|$)\s*", re.DOTALL)
ELLIPSIS = "…"


def snippet(text: str, wanted: Collection[str], limit: int, terms: Callable[[str], list[str]]) -> str:
    """The text, or the run of its sentences that holds the most of the wanted terms, the first among equals.

    Args:
        text: of a passage.
        wanted: terms of the query.
        limit: the longest result, in characters.
        terms: analyses a text as the wanted terms were.
    """
    if len(text) <= limit:
        return text
    room = max(1, limit - 2)
    sentences = _SENTENCE.findall(text)
    held = [set(terms(sentence)).intersection(wanted) for sentence in sentences]
    found: tuple[int, int, int] = (-1, 0, 1)
    end, size = 0, 0
    for start in range(len(sentences)):
        if end <= start:
            end, size = start, 0
        while end < len(sentences) and (end == start or size + len(sentences[end].rstrip()) <= room):
            size += len(sentences[end])
            end += 1
        score = len(set().union(*held[start:end]))
        if score > found[0]:
            found = score, start, end
        size -= len(sentences[start])
    _, start, end = found
    shown = "".join(sentences[start:end]).strip()[:room].strip()
    return f"{ELLIPSIS if start else ''}{shown}{ELLIPSIS}" if start or len(shown) < len(text) else shown
