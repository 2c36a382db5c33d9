"""AT-GRPO (arXiv 2510.11062), Eq. 4 and App. A.1: what a role earns in a turn, of team and local rewards.

The numbers that go in, team rewards and scores, come from environments (`concertino_bench.environments`); here they are
mixed. Two mixes are in the paper, and they are not the same: Eq. 4 is alpha · team + local, App. A.1 is
lambda · team + (1 - lambda) · mask · local. The released code follows neither.

An episode of such a term is a candidate of a group: it ends with the turn of a role, and that is what is scored; with
`over: mean`, a whole rollout is scored by the mean over its turns.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from concertino import UsageError
from concertino_bench.environments import ALPHA, COEFFICIENTS, LAMBDAS, alpha_mix, lambda_mix

from concertino_train.episodes import Episode, RoleTurn
from concertino_train.settings import did_you_mean

from .term import Term

Over = Literal["last", "mean"]
Weights = Mapping[str, Mapping[str, float]]


# -- terms -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Turns(Term):
    """A term of the turns of roles."""

    over: Over = "last"
    role: str = ""

    parameters: ClassVar[Mapping[str, str]] = {
        "over": "`last`: the last turn of the episode, for groups of agent and turn; `mean`: the mean of all",
        "role": "only turns of this role; empty for all",
    }

    def __post_init__(self) -> None:
        self._one_of("over", ("last", "mean"))

    @abstractmethod
    def of_turn(self, turn: RoleTurn, domain: str) -> float:
        """What a role earns in a turn."""

    def values(self, group: Sequence[Episode]) -> list[float]:
        """The reward of each episode."""
        return [self._value(episode) for episode in group]

    def _value(self, episode: Episode) -> float:
        turns = [turn for turn in episode.turns if self.role in ("", turn.role)]
        if not episode.turns and episode.domain:  # a workflow that ended before anybody acted earns nothing
            return 0.0
        if not turns:
            raise UsageError(
                f"{self.name}: episode {episode.id!r} has no turn{f' of {self.role!r}' if self.role else ''}; it reads "
                "Episode.turns, which RoleTurn.of makes of an environment's TurnReward"
            )
        earned = [self.of_turn(turn, episode.domain) for turn in turns]
        return earned[-1] if self.over == "last" else math.fsum(earned) / len(earned)


@dataclass(frozen=True)
class Team(_Turns):
    """r_team."""

    name = "at-grpo/team"
    formula = "r_team"
    source = "AT-GRPO App. A.1.1 to A.1.5"
    meaning = "The reward that all roles share: a share of tests passed, a grid solved, a step nearer to the goal."

    def of_turn(self, turn: RoleTurn, domain: str) -> float:
        """The team reward."""
        return turn.team


@dataclass(frozen=True)
class _WithLocal(_Turns):
    """A term that weights the scores of roles.

    The weights of `domain` are the paper's, unless others are given.
    """

    coefficients: Weights | None = None

    parameters: ClassVar[Mapping[str, str]] = {
        **_Turns.parameters,
        "coefficients": "c_l by role and score, adding up to 1 for each role; by default the paper's for the domain",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for role, weights in (self.coefficients or {}).items():
            if any(weight < 0 for weight in weights.values()) or abs(sum(weights.values()) - 1) > 1e-9:
                raise UsageError(
                    f"{self.name}: coefficients[{role!r}]={dict(weights)}; expected numbers from 0 that add up to 1, "
                    f"got {sum(weights.values()):g}"
                )

    def local(self, turn: RoleTurn, domain: str) -> float:
        """App. A.1: r_loc = Σ c_l s_l with Σ c_l = 1; 0 for a role without scores."""
        if not turn.scores:
            return 0.0
        weights = self._weights(turn.role, domain)
        if set(turn.scores) != set(weights):
            raise UsageError(
                f"{self.name}: scores {sorted(turn.scores)} do not fit weights {sorted(weights)}; the names have to be "
                "the same"
            )
        # AT-GRPO App. A.1, r_loc. Weights that add up to 1 but for rounding may exceed the bound of 1.
        return min(1.0, math.fsum(weights[name] * score for name, score in turn.scores.items()))

    def _weights(self, role: str, domain: str) -> Mapping[str, float]:
        table = self.coefficients if self.coefficients is not None else COEFFICIENTS.get(domain)
        if table is None:
            known = did_you_mean(domain, list(COEFFICIENTS))
            raise UsageError(
                f"{self.name}: there are no coefficients for domain {domain!r}; {known} Set Episode.domain, or give "
                "`coefficients`"
            )
        if role not in table:
            raise UsageError(f"{self.name}: no coefficients for role {role!r}; {did_you_mean(role, list(table))}")
        return table[role]


@dataclass(frozen=True)
class Local(_WithLocal):
    """r_loc."""

    name = "at-grpo/local"
    formula = "m · Σ_l c_l s_l"
    source = "AT-GRPO App. A.1.1 to A.1.5"
    meaning = "What the role alone did; 0 where it could not be worked out (m = 0)."

    def of_turn(self, turn: RoleTurn, domain: str) -> float:
        """The local reward."""
        return self.local(turn, domain) if turn.verifiable else 0.0


@dataclass(frozen=True)
class AlphaMix(_WithLocal):
    """Eq. 4."""

    alpha: float = ALPHA

    name = "at-grpo/alpha"
    formula = "r = α · r_team + r_loc"
    source = "AT-GRPO Eq. 4"
    meaning = (
        "Up to 1 + α, although the paper declares rewards of 0 to 1. A role that cannot be verified earns no r_loc."
    )
    parameters: ClassVar[Mapping[str, str]] = {
        **_WithLocal.parameters,
        "alpha": "α, 0 or more: weight of the team reward, 1 in the paper",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._not_negative("alpha")

    @property
    def bounds(self) -> tuple[float, float]:
        """0 to 1 + alpha."""
        return 0.0, 1.0 + self.alpha

    def of_turn(self, turn: RoleTurn, domain: str) -> float:
        """Eq. 4: α · r_team + r_loc."""
        return alpha_mix(turn.team, self.local(turn, domain) if turn.verifiable else 0.0, self.alpha)


@dataclass(frozen=True)
class LambdaMix(_WithLocal):
    """App. A.1."""

    share: float | None = None

    name = "at-grpo/lambda"
    formula = "r = λ · r_team + (1 - λ) · m · r_loc"
    source = "AT-GRPO App. A.1.3 to A.1.5"
    meaning = "λ is 0.7 for maths, 0.6 for sudoku, 0.5 for plan-path, 0.4 for sokoban. The paper gives none for code."
    parameters: ClassVar[Mapping[str, str]] = {
        **_WithLocal.parameters,
        "share": "λ, 0 to 1; by default the paper's for the domain, and an error for code",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None and not 0 <= self.share <= 1:
            raise UsageError(f"{self.name}: share={self.share!r}; expected a number from 0 to 1")

    def of_turn(self, turn: RoleTurn, domain: str) -> float:
        """App. A.1: λ · r_team + (1 - λ) · m · r_loc."""
        share = LAMBDAS.get(domain) if self.share is None else self.share
        if share is None:
            raise UsageError(f"{self.name}: the paper gives no lambda for domain {domain!r}; give `share`")
        return lambda_mix(turn.team, self.local(turn, domain), share, verifiable=turn.verifiable)


@dataclass(frozen=True)
class Released(_Turns):
    """The released code's rewards of roles."""

    name = "at-grpo/released"
    formula = (
        "coder 2·pass; tester golden + pass; reasoner 2·correct; programmer of maths step + correct, step -1, 0 or 1; "
        "games: environment - 2·1[unreadable]"
    )
    source = "the released code of AT-GRPO; neither Eq. 4 nor App. A.1"
    meaning = (
        "Reads `RoleTurn.facts`: `golden` (tester), `step` (programmer of maths), `environment` (games; the score "
        "`format` says whether the text could be read). pass and correct are the team reward."
    )
    differences = (
        "The code has no λ, no mask and none of the scores of App. A.1; rewards of games are shaped and without "
        "bounds, so groups of different domains are not comparable."
    )

    @property
    def bounds(self) -> tuple[float, float]:
        """None, because of the games."""
        return -float("inf"), float("inf")

    def of_turn(self, turn: RoleTurn, domain: str) -> float:
        """The reward that the released code gives for a turn."""
        roles: dict[tuple[str, str], Callable[[], float]] = {
            # Not one of these is in the paper; see `differences`.
            ("code", "coder"): lambda: 2.0 * turn.team,
            ("code", "tester"): lambda: self._fact(turn, "golden") + turn.team,
            ("maths", "reasoner"): lambda: 2.0 * turn.team,
            ("maths", "programmer"): lambda: self._fact(turn, "step") + turn.team,
        }
        if domain in ("plan-path", "sudoku", "sokoban"):
            readable = turn.scores.get("format", 1.0) > 0
            # The released games subtract 2 for a text that cannot be read.
            return self._fact(turn, "environment") - (0.0 if readable else 2.0)
        if (domain, turn.role) not in roles:
            known = "; ".join(f"{name} of {of}" for of, name in roles)
            raise UsageError(f"{self.name}: there is no reward for {turn.role!r} of {domain!r}; {known}; and games")
        return roles[domain, turn.role]()

    def _fact(self, turn: RoleTurn, name: str) -> float:
        if name not in turn.facts:
            raise UsageError(f"{self.name}: {turn.role} of turn {turn.turn} lacks the fact {name!r} (RoleTurn.facts)")
        return turn.facts[name]
