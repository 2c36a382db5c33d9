"""Options of an index and of fetching. All that changes what is built is part of an index's identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from .analysis import analyser
from .errors import CorpusError

Mode = Literal["bm25", "dense", "hybrid"]
"""What a search ranks by."""
Variant = Literal["lucene", "okapi"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
TextKind = Literal["passage", "query"]
FORMAT = 1
"""Version of the files; another one means another key."""
PASSAGE_CHARS = 1200
"""Characters of a passage that is cut from a document, by default."""
EXACT_UP_TO = 100_000
"""Passages whose vectors are compared one by one; with 384 numbers each, that reads 150 MB per batch."""


@runtime_checkable
class TextEmbedder(Protocol):
    """What dense retrieval needs of a model.

    Attributes:
        name: names the model and all that changes its vectors; another name means another index.
    """

    name: str

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Any:
        """Vectors of texts: anything that numpy takes for an array of shape (texts, dimensions)."""


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
    embedder: TextEmbedder | None = None
    exact_up_to: int = EXACT_UP_TO

    def __post_init__(self) -> None:
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


TEXT_TYPES = ("text/", "application/xhtml+xml", "application/json", "application/xml", "application/ld+json")


@dataclass(frozen=True)
class FetchLimits:
    """What a fetch may take.

    Attributes:
        seconds: for all of it, redirects and robots.txt included.
        connect_seconds: for each connection, the name's resolution included.
        idle_seconds: between two pieces of an answer.
        max_bytes: of a body, unpacked; what comes after is not read.
        redirects: that are followed.
        types: beginnings of the content types that are read.
    """

    seconds: float = 20.0
    connect_seconds: float = 5.0
    idle_seconds: float = 10.0
    max_bytes: int = 2_000_000
    redirects: int = 5
    types: Sequence[str] = TEXT_TYPES
