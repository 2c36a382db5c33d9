"""Votes: which answer most samples gave, by rules that leave nothing to chance.

1. A sample without an answer does not vote.
2. Answers with one `answer_key` are one candidate, shown as its first sample wrote it.
3. The candidate with the most votes wins; between equals, the one whose first sample has the lowest number.

Invariant: the outcome depends on the answers and their numbers alone, never on the order in which they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concertino.text import answer_key

_SHOWN = 60
_MOST_SHOWN = 5


@dataclass(frozen=True)
class VoteCandidate:
    """An answer that was voted for.

    Attributes:
        answer: as its first sample wrote it.
        samples: numbers of the samples that gave it, from 0, ascending.
    """

    answer: str
    samples: tuple[int, ...]


@dataclass(frozen=True)
class VoteOutcome:
    """An outcome.

    Attributes:
        candidates: most votes first, then by the number of the first sample; empty if no sample voted.
        of: how many samples there were, those without an answer included.
    """

    candidates: tuple[VoteCandidate, ...]
    of: int

    @property
    def winner(self) -> VoteCandidate | None:
        """The first candidate; None if no sample voted."""
        return self.candidates[0] if self.candidates else None

    @property
    def tied(self) -> tuple[VoteCandidate, ...]:
        """The candidates with the most votes, if there are several of them."""
        best = [c for c in self.candidates if len(c.samples) == len(self.candidates[0].samples)]
        return tuple(best) if len(best) > 1 else ()

    def describe(self, *, decided: bool = True) -> str:
        """The outcome in a sentence: how many voted, the counts, and a tie.

        Args:
            decided: whether the vote decides a tie; otherwise another request did.
        """
        voted = sum(len(c.samples) for c in self.candidates)
        text = f"{voted} of {self.of} samples voted"
        if self.candidates:
            shown = [f"{_shorten(c.answer)} ({len(c.samples)})" for c in self.candidates[:_MOST_SHOWN]]
            more = len(self.candidates) - len(shown)
            text += ": " + ", ".join([*shown, *([f"{more} more"] if more else [])])
        if self.tied:
            text += f"; a tie of {len(self.tied)}" + (", decided for the one that was given first" if decided else "")
        return text


def count_votes(answers: Sequence[str | None]) -> VoteOutcome:
    """Count the answers of samples, in the order of their numbers; None for a sample that has none."""
    groups: dict[str, list[int]] = {}
    for number, answer in enumerate(answers):
        if answer:
            groups.setdefault(answer_key(answer), []).append(number)
    candidates = [VoteCandidate(str(answers[numbers[0]]), tuple(numbers)) for numbers in groups.values()]
    candidates.sort(key=lambda c: (-len(c.samples), c.samples[0]))
    return VoteOutcome(tuple(candidates), len(answers))


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
