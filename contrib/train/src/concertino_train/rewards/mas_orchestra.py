"""MAS-Orchestra (arXiv 2601.14652), Eq. 3: 1 for a right answer, else 0. The released code pays for running, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from concertino_train.episodes import Episode

from .functions import indicator
from .term import Term

RELEASED_EXECUTED, RELEASED_CORRECT = 0.1, 0.9
"""Weights of the released code's default; its recipe sets 0 and 1."""


@dataclass(frozen=True)
class CorrectAnswer(Term):
    """Eq. 3."""

    name = "mas-orchestra/correct"
    formula = "1[ŷ = y]"
    source = "MAS-Orchestra Eq. 3"
    meaning = "1 if the verdict is right; with several answers, if all of them are."

    def values(self, group: Sequence[Episode]) -> list[float]:
        """1 or 0 for each episode."""
        return [indicator(episode.right) for episode in group]


@dataclass(frozen=True)
class Executed(Term):
    """The released code's bonus for a graph that ran."""

    every_call: bool = False

    name = "mas-orchestra/executed"
    formula = "1[the graph gave an output]"
    source = "the released code of MAS-Orchestra; not in the paper"
    meaning = "1 for any output that is not blank."
    parameters: ClassVar[Mapping[str, str]] = {"every_call": "whether every call has to end OK, too"}
    differences = (
        "Only the released code has this term, with the weight 0.1 beside 0.9 for the answer. A direct answer counts "
        "as executed whenever it is not empty, so any text earns 0.1."
    )

    def values(self, group: Sequence[Episode]) -> list[float]:
        """1 or 0 for each episode."""
        every = self.every_call
        return [indicator(each.answered and (not every or all(c.ok for c in each.calls))) for each in group]
