"""Votes: how many gave each answer, and who won. Which answers mean the same is what `reply_key` says.

Invariant: the outcome depends on the answers and their order alone; equal counts are a tie, which is always told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from concertino_bench.graders.answer_keys import Form, reply_key

_SHOWN = 40


class Candidate(NamedTuple):
    """An answer that was voted for.

    Attributes:
        key: what equal answers share: a number, or words.
        voters: places of those who gave it, ascending.
    """

    key: str
    voters: tuple[int, ...]


class Vote(NamedTuple):
    """The outcome.

    Attributes:
        candidates: most votes first, and of equal ones the one that was given first.
        silent: how many texts held no answer that could be read.
    """

    candidates: tuple[Candidate, ...]
    silent: int

    @property
    def tied(self) -> tuple[Candidate, ...]:
        """All with the most votes, if they are several."""
        most = len(self.candidates[0].voters) if self.candidates else 0
        best = tuple(each for each in self.candidates if len(each.voters) == most)
        return best if len(best) > 1 else ()

    def describe(self) -> str:
        """The counts in words, with the tie if there is one."""
        counts = ", ".join(f"{len(each.voters)} for {_short(each.key)}" for each in self.candidates[:5])
        text = counts or "nobody voted"
        text += f", {self.silent} without an answer" if self.silent else ""
        return f"{text}; a tie of {len(self.tied)}" if self.tied else text


def count(texts: Sequence[str | None], form: Form) -> Vote:
    """Count the answers of some replies; None for one that did not come."""
    voters: dict[str, list[int]] = {}
    silent = 0
    for place, text in enumerate(texts):
        key = None if text is None else reply_key(text, form)
        if key is None:
            silent += 1
        else:
            voters.setdefault(key, []).append(place)
    # Of equal counts the one that was given first, so that no order of a dict decides.
    candidates = sorted(voters.items(), key=lambda item: (-len(item[1]), item[1][0]))
    return Vote(tuple(Candidate(key, tuple(places)) for key, places in candidates), silent)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
