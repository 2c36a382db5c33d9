"""Citations: does a quote occur in what was read?

A quote is compared by its words as a reader sees them: blanks, typographic quotation marks, dashes, case and the marks
of Markdown do not count, and an ellipsis inside a quote means what was left out. Anything else counts.

Invariant: a citation that is kept names a source that was read, and its quote stands there, in order.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LEAST_QUOTE = 12
"""Characters of the shortest quote; a bare year or name occurs almost anywhere and proves nothing."""
_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:…|\.{3,})(?:\s*\])?\s*")
_SAME = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("*_#\u200b\u00ad", None),
    }
)


@dataclass(frozen=True, slots=True)
class Source:
    """A text that was read.

    Attributes:
        id: of the passage, or the address of the page.
        title: may be empty.
        text: as it was shown.
    """

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Citation:
    """A source with the words of it that carry a claim."""

    source: str
    quote: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"source": self.source, "quote": self.quote}


def normalised(text: str) -> str:
    """A text as quotes are compared."""
    # Before NFKC, which takes an acute accent apart, and after it, as it makes minus signs of superscript ones.
    folded = unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME).casefold()
    return " ".join(folded.split())


def _bare(text: str) -> str:
    """A normalised text without the marks around it."""
    return normalised(text).strip(" \"'.,;:")


def stands_in(quote: str, text: str) -> bool:
    """Whether the parts of a quote occur in a text, one after another."""
    where = 0
    whole = normalised(text)
    parts = [_bare(part) for part in _ELLIPSIS.split(quote)]
    parts = [part for part in parts if part]
    for part in parts:
        found = whole.find(part, where)
        if found < 0:
            return False
        where = found + len(part)
    return bool(parts)


def why_dropped(citation: Citation, read: Mapping[str, Source]) -> str:
    """What is wrong with a citation; empty if nothing is.

    Args:
        citation: as a model gave it, with the source's id.
        read: what was read, by id.
    """
    source = read.get(citation.source)
    if source is None:
        return "this source was not read"
    if len(_bare(citation.quote)) < min(LEAST_QUOTE, len(_bare(source.text))):
        return f"the quote is shorter than {LEAST_QUOTE} characters"
    if not stands_in(citation.quote, source.text):
        return "the quote does not occur in what was read of it"
    return ""
