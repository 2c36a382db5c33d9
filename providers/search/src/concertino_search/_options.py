"""Options of an index: all that changes what is built, and so its identity. Importing them imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from ._errors import CorpusError

if TYPE_CHECKING:
    from ._embedding import Embedder

Mode = Literal["bm25", "dense", "hybrid"]
"""What a search ranks by."""
Variant = Literal["lucene", "okapi"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
FORMAT = 1
"""Version of the files; another one means another key."""
PASSAGE_CHARS = 1200
"""Characters of a passage that is cut from a document, unless told otherwise."""
EXACT_UP_TO = 100_000
"""Passages whose vectors are compared one by one; with 384 numbers each, that reads 150 MB per batch."""


@dataclass(frozen=True)
class IndexOptions:
    """How a corpus is indexed.

    Attributes:
        analyser: `english` (or another Snowball language), `words` or `whitespace`.
        k1, b: BM25's saturation of repeated terms (>= 0) and correction for length (0 to 1).
        variant: BM25's idf, `lucene` or `okapi`.
        titles: whether titles are searched with the texts.
        passage_chars: the longest passage that is cut from a document, in characters; lines of JSON are not cut.
        embedder: for dense and hybrid search; None for BM25 alone.
        exact_up_to: passages up to which vectors are compared one by one.
    """

    analyser: str = "english"
    k1: float = 1.5
    b: float = 0.75
    variant: Variant = "lucene"
    titles: bool = True
    passage_chars: int = PASSAGE_CHARS
    embedder: Embedder | None = None
    exact_up_to: int = EXACT_UP_TO

    def __post_init__(self) -> None:
        from ._analysis import analyser

        analyser(self.analyser)
        if self.passage_chars < 1:
            raise CorpusError(f"passage_chars={self.passage_chars}; expected at least 1")

    def to_json(self) -> dict[str, Any]:
        """All that changes an index."""
        return {
            "format": FORMAT,
            "analyser": self.analyser,
            "k1": self.k1,
            "b": self.b,
            "variant": self.variant,
            "titles": self.titles,
            "passage_chars": self.passage_chars,
            "embedder": self.embedder.name if self.embedder is not None else "",
            "exact_up_to": self.exact_up_to,
        }
