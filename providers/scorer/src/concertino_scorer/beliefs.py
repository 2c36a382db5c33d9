"""Beliefs: how often a member is expected to be right, what its card says of it, and how far that is trusted.

A belief is a mixture of two beta distributions of the share of right answers: what the card means, with the weight
`trust`, and the uniform one, for a card that lies or says nothing. Both are conjugate to right and wrong answers, so
earlier calls change them, and their weights, in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, log

from concertino import UsageError


@dataclass(frozen=True)
class Belief:
    """What is believed of a member's share of right answers.

    Attributes:
        mean: what the card means, 0 to 1.
        precision: how many calls its word is worth.
        trust: the probability that the card means its share at all.
        right: right answers seen.
        wrong: wrong answers seen.
    """

    mean: float
    precision: float
    trust: float
    right: float = 0.0
    wrong: float = 0.0

    @property
    def trusted(self) -> float:
        """The probability that the card means its share, after what was seen."""
        alpha, beta = self.mean * self.precision, (1 - self.mean) * self.precision
        told = log(self.trust) + _log_beta(alpha + self.right, beta + self.wrong) - _log_beta(alpha, beta)
        lied = log(1 - self.trust) + _log_beta(1 + self.right, 1 + self.wrong)
        return 1 / (1 + exp(min(700.0, lied - told)))

    @property
    def expected(self) -> float:
        """The expected share of right answers, after what was seen."""
        seen, trusted = self.right + self.wrong, self.trusted
        told = (self.mean * self.precision + self.right) / (self.precision + seen)
        return trusted * told + (1 - trusted) * (1 + self.right) / (2 + seen)

    def at_least(self, share: float) -> float:
        """The probability that the share of right answers is at least this one, after what was seen."""
        alpha, beta, trusted = self.mean * self.precision, (1 - self.mean) * self.precision, self.trusted
        told = _tail(share, alpha + self.right, beta + self.wrong)
        return trusted * told + (1 - trusted) * _tail(share, 1 + self.right, 1 + self.wrong)

    def after(self, right: float, wrong: float) -> Belief:
        """The belief after more answers.

        Raises:
            UsageError: a number is below 0.
        """
        if right < 0 or wrong < 0:
            raise UsageError(f"right={right!r}, wrong={wrong!r}: expected numbers of answers, 0 or more")
        return Belief(self.mean, self.precision, self.trust, self.right + right, self.wrong + wrong)


def cheapest_sufficient(beliefs: Sequence[Belief], prices: Sequence[float], sufficient: float) -> list[float]:
    """For each member the probability that it is the cheapest of those that suffice.

    It suffices itself, and none that is cheaper does; members are taken to be independent.

    Args:
        prices: of each; infinite where it is unknown.
        sufficient: the share of right answers that is enough.
    """
    found = [0.0] * len(beliefs)
    none_cheaper = 1.0
    for place in sorted(range(len(beliefs)), key=lambda place: prices[place]):
        enough = beliefs[place].at_least(sufficient)
        found[place] = enough * none_cheaper
        none_cheaper *= 1 - enough
    return found


_STEPS = 400
"""Of an integral from 0 to 1."""


def _tail(share: float, alpha: float, beta: float) -> float:
    """How much of a beta distribution lies above a share, by the midpoint rule."""
    places = [(step + 0.5) / _STEPS for step in range(_STEPS)]
    scale = _log_beta(alpha, beta)
    density = [exp((alpha - 1) * log(x) + (beta - 1) * log(1 - x) - scale) for x in places]
    return sum(each for x, each in zip(places, density, strict=True) if x >= share) / sum(density)


def _log_beta(alpha: float, beta: float) -> float:
    return lgamma(alpha) + lgamma(beta) - lgamma(alpha + beta)
