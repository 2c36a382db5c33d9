"""The reward terms of AT-GRPO (arXiv 2510.11062, Eq. 4 and App. A.1) as pure functions of numbers.

A role's reward mixes a *team* reward, the same for all roles, with a *local* reward of the role: a convex combination
of *scores*, each 0 to 1. Two mixes are in the paper, and they are not the same: Eq. 4 is `alpha * team + local` with
alpha = 1, so it reaches 2; App. A.1 is `lambda * team + (1 - lambda) * mask * local`, which stays within 0 to 1, with a
lambda for every domain but code.

The invariant: nothing here knows a model, a text or a clock. A better score never lowers a reward, and every local
reward of scores within 0 to 1 lies within 0 to 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

DELTA = 1e-6
"""Tolerance of `numbers_equal` (A.1.1)."""
MUTATION_GOAL = 0.60
"""Mutation score from which a tester's coverage counts as whole (A.1.2)."""
ALPHA = 1.0
"""Weight of the team reward in Eq. 4 (section 5.1)."""
LAMBDAS: Mapping[str, float] = {"maths": 0.70, "sudoku": 0.60, "plan-path": 0.50, "sokoban": 0.40}
"""Share of the team reward by domain (A.1.1, A.1.3 to A.1.5). The paper gives none for code."""

COEFFICIENTS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "plan-path": {
        "planner": {"format": 0.20, "legal": 0.40, "shortest": 0.40},
        "programmer": {"format": 0.10, "runs": 0.40, "potential": 0.50},
    },
    "sudoku": {
        "planner": {"format": 0.15, "legal": 0.55, "progress": 0.30},
        "programmer": {"format": 0.10, "runs": 0.20, "sane": 0.70},
    },
    "sokoban": {
        "planner": {"format": 0.10, "legal": 0.45, "deadlock_free": 0.45},
        "programmer": {"format": 0.10, "runs": 0.30, "potential": 0.60},
    },
    "code": {
        "coder": {"builds": 0.10, "runs": 0.10, "keeps": 0.80},
        "tester": {"valid": 0.20, "coverage": 0.80},
    },
    "maths": {
        "reasoner": {"format": 0.20, "runs": 0.00, "step": 0.80},
        "programmer": {"format": 0.10, "runs": 0.10, "step": 0.80},
    },
}
"""Weight of each score, by domain and role (A.1.1 to A.1.5); the weights of a role add up to 1.

The paper's Tool is the role `programmer` here, its Planner (in A.1.3: Reasoner) the role `planner`.
"""

Mix = Literal["alpha", "lambda"]


# -- team rewards ------------------------------------------------------------------------------------------------------


def plan_path_team(before: float, after: float, first: float, *, clip: bool = True) -> float:
    """A.1.4: 1 at the goal, else what the turn came nearer, as a share of the first distance.

    With `clip`, as in the paper, going away costs nothing, so going back and forth collects reward turn by turn;
    without it, a way back costs what the way there gave.

    Args:
        before: Manhattan distance to the goal before the turn, in cells.
        after: and behind it.
        first: at the start of the task; at least 1 is used.
        clip: no reward below 0.

    Returns:
        0 to 1; without `clip` it may be negative.
    """
    if after == 0:
        return 1.0
    # Cut at 1: by the formula a walker who went farther off than the start could earn more, and the paper says 0 to 1.
    nearer = min(1.0, (before - after) / max(1.0, first))
    return max(0.0, nearer) if clip else nearer


def sokoban_team(on_goal: int, boxes: int) -> float:
    """A.1.5: the share of boxes that stand on goals; 1 with all of them. 0 to 1."""
    return _share(on_goal, boxes)


def code_team(passed: int, tests: int) -> float:
    """A.1.2: the share of tests that the program passes, 0 to 1."""
    return _share(passed, tests)


# -- scores of roles ---------------------------------------------------------------------------------------------------


def share_of(good: int, of: int) -> float:
    """A score of an action with several steps: the share of good ones; 0 without any.

    The paper scores one step at a time; for one step this is its 0 or 1.
    """
    return _share(good, of) if of else 0.0


def potential_kept(before: float, after: float) -> float:
    """A.1.4 and A.1.5: 1 if the potential did not fall, else 0. Potentials are minus a distance."""
    return float(after >= before)


def progress(filled: int, cells: int) -> float:
    """A.1.3: the share of all cells that were empty before the turn and are filled behind it, 0 to 1."""
    return _share(filled, cells)


def keeps_passing(before: Collection[int], now: Collection[int]) -> float:
    """A.1.2, non-regression: of the tests passed in the last turn, the share that still passes; 1 if there was none."""
    return len(set(before) & set(now)) / len(set(before)) if before else 1.0


def coverage(mutation_score: float | None) -> float:
    """A.1.2: min(1, mutation score / MUTATION_GOAL), 0 to 1; 0 where there was no mutation analysis."""
    return 0.0 if mutation_score is None else min(1.0, _unit("mutation_score", mutation_score) / MUTATION_GOAL)


def numbers_equal(a: Fraction, b: Fraction) -> bool:
    """A.1.1: whether two numbers differ by at most DELTA, or by that share of the second one if it is above 1."""
    return abs(a - b) <= DELTA * max(Fraction(1), abs(b))


# -- putting them together ---------------------------------------------------------------------------------------------


def local(domain: str, role: str, scores: Mapping[str, float]) -> float:
    """The local reward of a role: its scores, weighted (A.1). 0 to 1.

    Raises:
        ValueError: an unknown domain or role, a score that is missing, unknown or not within 0 to 1.
    """
    weights = coefficients(domain, role)
    if set(scores) != set(weights):
        raise ValueError(f"scores of {domain} {role}: got {sorted(scores)}; expected {sorted(weights)}")
    return sum(weight * _unit(name, scores[name]) for name, weight in weights.items())


def coefficients(domain: str, role: str) -> Mapping[str, float]:
    """The weights of a role's scores.

    Raises:
        ValueError: an unknown domain or role; names the known ones.
    """
    if domain not in COEFFICIENTS:
        raise ValueError(f"domain={domain!r}: expected one of {', '.join(COEFFICIENTS)}")
    if role not in COEFFICIENTS[domain]:
        raise ValueError(f"role={role!r}: the roles of {domain} are {', '.join(COEFFICIENTS[domain])}")
    return COEFFICIENTS[domain][role]


def alpha_mix(team: float, local: float, alpha: float = ALPHA) -> float:
    """Eq. 4: `alpha * team + local`, 0 to 1 + alpha."""
    if alpha < 0:
        raise ValueError(f"alpha={alpha}: expected 0 or more")
    return alpha * team + local


def lambda_mix(team: float, local: float, share: float, *, verifiable: bool = True) -> float:
    """A.1: `share * team + (1 - share) * mask * local`, 0 to 1.

    Args:
        team: the team reward.
        local: the local reward of the role.
        share: lambda; `LAMBDAS` has the paper's.
        verifiable: the mask m: whether the local reward could be worked out at all.
    """
    return _unit("share", share) * team + (1 - share) * (local if verifiable else 0.0)


@dataclass(frozen=True)
class TurnReward:
    """The rewards of one turn.

    Attributes:
        domain: "plan-path".
        team: the team reward.
        scores: by role, its scores by name.
        unverifiable: roles whose scores could not be worked out, whose mask is 0.
    """

    domain: str
    team: float
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unverifiable: frozenset[str] = frozenset()

    def local(self, role: str) -> float:
        """The local reward of a role; 0 for one that cannot be verified, or that said nothing."""
        # Raises for an unknown role, which would otherwise earn a silent 0.
        coefficients(self.domain, role)
        return local(self.domain, role, self.scores[role]) if role in self.scores else 0.0

    def of(self, role: str, mix: Mix = "alpha", *, alpha: float = ALPHA, share: float | None = None) -> float:
        """What a role earns.

        Args:
            role: of the workflow.
            mix: `alpha` (Eq. 4) or `lambda` (A.1).
            alpha: for `alpha`.
            share: for `lambda`; by default the paper's for the domain.

        Raises:
            ValueError: `lambda` for code without a share, since the paper gives none.
        """
        if mix == "alpha":
            return alpha_mix(self.team, self.local(role), alpha)
        given = LAMBDAS.get(self.domain) if share is None else share
        if given is None:
            raise ValueError(f"the paper gives no lambda for {self.domain}; pass share=, or mix='alpha'")
        return lambda_mix(self.team, self.local(role), given, verifiable=role not in self.unverifiable)


def _share(part: int, whole: int) -> float:
    if whole < 1 or not 0 <= part <= whole:
        raise ValueError(f"{part} of {whole}: expected a whole of 1 or more, and a part of it")
    return part / whole


def _unit(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name}={value}: expected a number from 0 to 1")
    return float(value)
