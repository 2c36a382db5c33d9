"""`search/tools`: which of ten thousand tools a question needs, by the words of their names, cards and arguments.

A question often needs several tools, and one ranking of all its words is led by the part that speaks longest. So it is
cut into clauses. Each clause scores the tools by BM25 over their fields, with the words of the whole question as its
context; a tool counts as much as it does for the clause that it suits best.

Invariant: what a card says moves its own tool and no other one. How rare a word is, is told by the names of tools and
arguments, never by cards; and no score depends on the scores of other tools.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from concertino import RankingEntry

from .function_words import FUNCTION_WORDS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .index.bm25 import Bm25

    Row = npt.NDArray[np.floating[Any]]

_CARD = 600
"""Characters of a card that are indexed: what it is for stands at its beginning, and a longer one must not gain."""
_NAME_WORDS = 12
"""Words of a name that are indexed."""
_WEIGHTS = {"name": 3, "provider": 1, "card": 1, "arguments": 1, "answered": 1}
"""How often a word of a field counts."""
_K1, _B, _LENGTH = 5.0, 0.5, 80.0
"""BM25's, for counts that are weighted so. The length is a constant: the mean of a pool depends on all of its cards."""
_MANY = 10_000
"""Tools of a pool, for how rare a word is; a constant for the same reason."""
_CONTEXT = 0.6
"""What the words of the whole question add to the score of a clause."""
_BALANCE = 0.3
"""0: clauses of frequent words count as much as those of rare ones; 1: they count as much as their words weigh."""
_LEADING = 2
"""Rarest words of a clause by which its scores are measured: few tools hold more of them."""
_CLAUSES = 40
_QUESTION = 8_000
"""Characters of a question that are read."""
_ANSWERED = 40
"""Earlier questions of one tool that are indexed."""

_CUTS = re.compile(r"(?<=[.?!;])\s+|,\s+|;|:\s|\n|—|[。；，、]|\b(?:and|then|also|plus)\b", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINTS = re.compile(r"[_/\-.:{}]+")

Encode = Callable[[list[str]], Any]
"""Texts to one vector each: `encode` of a sentence encoder. It blocks."""


class ToolRanking:
    """Tools by the words of a question, and with an encoder by its meaning too.

    Args:
        encode: gives the vectors of texts, such as `SentenceTransformer(...).encode`. The cards are encoded once for a
            pool, and each question once; both block the event loop for as long as it takes.
        name: of the ranking.
    """

    def __init__(self, encode: Encode | None = None, *, name: str = "tools") -> None:
        self.name = name
        self._encode = encode

    def order(self, question: str, entries: Sequence[RankingEntry]) -> list[str]:
        """Their names, best first; those that share no word with the question are left out."""
        return self.index(entries).search(question, len(entries))

    def index(self, entries: Sequence[RankingEntry]) -> ToolIndex:
        """An index of these entries."""
        return ToolIndex(entries, self._encode)


class ToolIndex:
    """The words of many tools, and their vectors.

    Args:
        entries: the tools.
        encode: as for `ToolRanking`.
    """

    def __init__(self, entries: Sequence[RankingEntry], encode: Encode | None = None) -> None:
        from .analysis import analyser
        from .index.bm25 import Bm25

        self._terms = analyser("english")
        self._aside = frozenset(chain.from_iterable(map(self._terms, FUNCTION_WORDS)))
        self._entries = entries
        self._named = Counter(chain.from_iterable(map(self._names, entries)))
        words = [self._words(entry) for entry in entries]
        self._bm25: Bm25 | None = None
        if any(words):
            self._bm25 = Bm25.build(words, k1=_K1, b=_B, variant="lucene", length=_LENGTH, weight=self._rarity)
        self._encode = encode
        self._vectors = None if encode is None else _unit(encode([_shown(entry) for entry in entries]))

    def search(self, question: str, most: int) -> list[str]:
        """At most so many names, best first; those that share no word with the question are left out."""
        import numpy as np

        question = question[:_QUESTION]
        values = self._by_words(question)
        if self._vectors is not None and self._encode is not None:
            # Sums of values, and no fusion of ranks, in which one tool moves others (Bruch, Gai and Ingber, 2023).
            values = values + np.maximum(self._vectors @ _unit(self._encode([question]))[0], 0)
        best = (-values).argsort(kind="stable")[:most]
        return [self._entries[place].name for place in best[values[best] > 0].tolist()]

    def _rarity(self, term: str) -> float:
        """How much a word tells: the more, the fewer tools are named by it."""
        return math.log(1 + _MANY / (max(1, self._named[term]) + 0.5))

    def _names(self, entry: RankingEntry) -> set[str]:
        """The terms of its names."""
        return set(self._terms(apart(f"{entry.name} {' '.join(entry.arguments)}")))

    def _words(self, entry: RankingEntry) -> list[str]:
        """The terms of a tool, each as often as its field weighs."""
        provider, _, name = entry.name.rpartition("/")
        fields = {
            "name": " ".join(apart(name).split()[:_NAME_WORDS]),
            "provider": apart(provider),
            "card": entry.card[:_CARD],
            "arguments": apart(" ".join(entry.arguments)),
            "answered": " ".join(entry.answered[:_ANSWERED]),
        }
        return [term for field, text in fields.items() if text for term in self._terms(text) * _WEIGHTS[field]]

    def _by_words(self, question: str) -> Row:
        """A value for each tool, 0 for one that shares no word with the question."""
        import numpy as np

        none = np.zeros(len(self._entries))
        if self._bm25 is None or not question.strip():
            return none
        parts = [list(dict.fromkeys(self._terms(part))) for part in clauses(question)]
        # What people say around what they want is in many cards, and in no name that would tell how frequent it is.
        parts = [[term for term in part if term not in self._aside] for part in parts]
        parts = [part for part in parts if part]
        if not parts:
            return none
        whole = list(dict.fromkeys(chain.from_iterable(parts)))
        *rows, context = self._bm25.scores([*parts, whole])[:, : len(self._entries)]
        measures = np.array([self._measure(part) for part in parts]) + _CONTEXT * self._measure(whole)
        scale = measures ** (_BALANCE - 1)
        claims = [(row + _CONTEXT * context) * factor for row, factor in zip(rows, scale, strict=True) if row.any()]
        return np.max(claims, axis=0, initial=0.0) if claims else none

    def _measure(self, terms: Iterable[str]) -> float:
        """What the rarest words of a clause weigh together."""
        return sum(sorted(map(self._rarity, terms))[-_LEADING:])


def clauses(question: str) -> list[str]:
    """The parts of a question that may each need a tool of its own."""
    parts = [part for part in _CUTS.split(question) if part.strip()]
    # A document in the question has hundreds; the whole then stands for what is beyond the limit.
    return parts if len(parts) <= _CLAUSES else [*parts[: _CLAUSES - 1], " ".join(parts[_CLAUSES - 1 :])]


def apart(name: str) -> str:
    """The words of a name: `getUserByID`, `get_user` and `get-user` alike."""
    return _JOINTS.sub(" ", _CAMEL.sub(" ", name))


def _shown(entry: RankingEntry) -> str:
    return f"{apart(entry.name)}: {entry.card[:_CARD]}"


def _unit(vectors: Any) -> Row:
    """Vectors of length 1."""
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Row = rows / np.where(lengths == 0, 1, lengths)
    return unit
