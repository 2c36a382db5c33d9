"""`search/tools`: which of ten thousand tools a question needs, by the words of their names, cards and arguments.

A question often needs several tools, and one ranking of all its words is led by the part that speaks longest. So it is
cut into clauses. Each clause ranks the tools by BM25 over their fields, with the words of the whole question as its
context, and the clauses share the places.

Invariant: what a card says moves its own tool, and hardly another one: the order of the others changes only where the
words that it holds become less rare by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from concertino import RankingEntry

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Row = npt.NDArray[np.floating[Any]]

_CARD = 600
"""Characters of a card that are indexed: what it is for stands at its beginning, and a longer one must not gain."""
_NAME_WORDS = 12
"""Words of a name that are indexed."""
_WEIGHTS = {"name": 6, "provider": 4, "card": 2, "arguments": 1, "answered": 2}
"""How often a word of a field counts."""
_K1, _B = 2.4, 0.5
"""BM25's, for counts that are weighted so: 1.2 where a word of the card counts once."""
_CONTEXT = 0.3
"""What the words of the whole question add to the score of a clause."""
_BALANCE = 0.3
"""0: the best tools of each clause count alike; 1: they count as much as their scores."""
_LEAST_SHARE = 2
"""Places of a clause at least; with one, the best tool of a clause would set its measure alone."""
_CANDIDATES = 20
"""Places of a clause that are looked at beyond those that are wanted."""
_CLAUSES = 40
_QUESTION = 8_000
"""Characters of a question that are read."""
_ANSWERED = 40
"""Earlier questions of one tool that are indexed."""
_RANK = 60
"""How much less the first ranks stand out where rankings are fused (Cormack, Clarke and Büttcher, 2009)."""

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
        self._entries = entries
        self._encode = encode
        words = [self._words(entry) for entry in entries]
        self._bm25 = Bm25.build(words, k1=_K1, b=_B, variant="lucene") if any(words) else None
        self._vectors = None if encode is None else _unit(encode([_shown(entry) for entry in entries]))

    def search(self, question: str, most: int) -> list[str]:
        """At most so many names, best first; those that share no word with the question are left out."""
        question = question[:_QUESTION]
        found = self._by_words(question, most)
        if self._vectors is not None and self._encode is not None:
            found = self._fused(question, found, most)
        return [self._entries[place].name for place in found]

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

    def _by_words(self, question: str, most: int) -> list[int]:
        """Places of tools, best first."""
        import numpy as np

        if self._bm25 is None or not question.strip():
            return []
        parts = [list(dict.fromkeys(self._terms(part))) for part in clauses(question)]
        whole = list(dict.fromkeys(chain.from_iterable(parts)))
        *rows, context = self._bm25.scores([*(part for part in parts if part), whole])[:, : len(self._entries)]
        claims = np.array([row for row in rows if row.any()])
        if not len(claims):
            return []
        claims = claims + _CONTEXT * context
        wanted = min(most + _CANDIDATES, claims.shape[1])
        near = np.unique(np.concatenate([np.argpartition(-row, wanted - 1)[:wanted] for row in claims]))
        return _shared_out(claims[:, near], near, most)

    def _fused(self, question: str, found: Sequence[int], most: int) -> list[int]:
        """Both rankings in one, by their ranks."""
        import numpy as np

        assert self._encode is not None
        assert self._vectors is not None
        near = (self._vectors @ _unit(self._encode([question]))[0]).argsort()[::-1][: 2 * most]
        scores: dict[int, float] = {}
        for ranking in (list(found), np.asarray(near).tolist()):
            for rank, place in enumerate(ranking, start=1):
                scores[place] = scores.get(place, 0.0) + 1 / (_RANK + rank)
        return sorted(scores, key=lambda place: -scores[place])[:most]


def clauses(question: str) -> list[str]:
    """The parts of a question that may each need a tool of its own."""
    parts = [part for part in _CUTS.split(question) if part.strip()]
    # A document in the question has hundreds; the whole then stands for what is beyond the limit.
    return parts if len(parts) <= _CLAUSES else [*parts[: _CLAUSES - 1], " ".join(parts[_CLAUSES - 1 :])]


def apart(name: str) -> str:
    """The words of a name: `getUserByID`, `get_user` and `get-user` alike."""
    return _JOINTS.sub(" ", _CAMEL.sub(" ", name))


def _shared_out(claims: Row, places: npt.NDArray[Any], most: int) -> list[int]:
    """Places of tools, best first, so that each clause gets about as many as the others.

    Each clause measures its scores by the last one that its share of the places reaches. Tools that reach it in more
    than half of the clauses, such as a card that holds every word, are found like all others and set no measure.

    Args:
        claims: a row of scores per clause, a column per tool.
        places: of the tools.
    """

    share = max(_LEAST_SHARE, round(most / len(claims)))
    measure = _measure(claims, share)
    everywhere = (claims >= measure).sum(axis=0) > max(2, len(claims) / 2)
    if everywhere.any() and not everywhere.all():
        measure = _measure(claims[:, ~everywhere], share)
    values = (claims / measure * measure**_BALANCE).max(axis=0)
    best = (-values).argsort(kind="stable")[:most]
    found: list[int] = places[best[values[best] > 0]].tolist()
    return found


def _measure(claims: Row, share: int) -> Row:
    """For each clause the score of that rank; where fewer have one, the least; where none has, 1."""
    import numpy as np

    rank = min(share, claims.shape[1])
    least = np.where(claims > 0, claims, np.inf).min(axis=1)
    measure = np.maximum(np.partition(claims, -rank, axis=1)[:, -rank], least)
    kept: Row = np.where(np.isfinite(measure), measure, 1.0)[:, None]
    return kept


def _shown(entry: RankingEntry) -> str:
    return f"{apart(entry.name)}: {entry.card[:_CARD]}"


def _unit(vectors: Any) -> Row:
    """Vectors of length 1."""
    import numpy as np

    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Row = rows / np.where(lengths == 0, 1, lengths)
    return unit
