"""ParaManager (arXiv 2604.17009), section 3.3: R = R_task + R_fmt + R_div + R_eff, Eq. 10 to 18.

No code of it was published, so there is no variant `as_released`. Where the text leaves something open, there is a
parameter whose default is the most literal reading.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from concertino_train.episodes import Episode, EpisodeRound

from .functions import indicator, soft_target, spent
from .term import Term

THETA_PAR, THETA_TOOL = 1.25, 3
"""Thresholds of Eq. 14 and 15 (Table 5)."""
LENGTH_TARGET, COST_TARGET = 12_288, 8.0
"""L_tar in tokens and C_tar in cost units (Table 5)."""
FINAL_UNITS = 1.0
"""What `final_answer` costs in the paper's table of tools; our executor does not call it, so it charges nothing."""
Final = Literal["count", "leave_out"]


# -- functions of numbers ----------------------------------------------------------------------------------------------


def format_reward(exact: Sequence[bool]) -> float:
    """Eq. 12: (1/T) Σ_t Fmt(y_t), the mean over rounds; 0 without rounds.

    Args:
        exact: for each of the T rounds, whether its text has the exact form.

    Returns:
        0 to 1; one bad round of 12 costs 1/12.
    """
    return sum(map(bool, exact)) / len(exact) if exact else 0.0


def parallelism_reward(calls: Sequence[int], threshold: float = THETA_PAR) -> float:
    """Eq. 14: 1[(1/T) Σ_t n_t ≥ θ_par]; 0 without rounds.

    Args:
        calls: n_t, the number of calls of each of the T rounds.
        threshold: θ_par, calls per round.

    Returns:
        0 or 1.
    """
    # ParaManager Eq. 14, multiplied by T: no division, and a mean of exactly θ counts whatever the rounding.
    return indicator(bool(calls) and sum(calls) >= threshold * len(calls))


def tool_reward(tools: Collection[str], threshold: int = THETA_TOOL) -> float:
    """Eq. 15: 1[|U(τ)| ≥ θ_tool]. 0 or 1.

    Args:
        tools: names of the members called; `final_answer` is none of them.
        threshold: θ_tool, different members.
    """
    return indicator(len(set(tools)) >= threshold)


# -- what the functions read of an episode -----------------------------------------------------------------------------


def rounds_of(episode: Episode, final: Final = "count") -> list[EpisodeRound]:
    """The T rounds; with `leave_out`, without the one that only ends the run."""
    return [each for each in episode.policy_rounds if final == "count" or each.kind != "final"]


def calls_per_round(episode: Episode, final: Final = "count") -> list[int]:
    """n_t; a round that ends the run makes one call, `final_answer`."""
    # The paper ends a run by a call of `final_answer`, so n_t of that round is 1.
    return [1 if each.kind == "final" else len(each.calls) for each in rounds_of(episode, final)]


def tools_of(episode: Episode) -> set[str]:
    """U(τ): members that were called and exist; a name that nobody has is no tool."""
    # ParaManager Eq. 15: U(τ) counts tools that were called; guessing names must not earn anything.
    return {call.name for call in episode.calls if call.kind != "unknown" and call.name != "final_answer"}


def cost_units(episode: Episode, final_units: float = FINAL_UNITS) -> float:
    """C(τ): units of all calls, and those of `final_answer` for a run that ended itself."""
    ended = sum(1 for each in episode.rounds if each.kind == "final")
    return spent(episode, "units") + final_units * ended


# -- terms -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskReward(Term):
    """Eq. 11."""

    name = "paramanager/task"
    formula = "1[ẑ = GT(q)]"
    source = "ParaManager Eq. 11"
    meaning = "1 if the verdict is right."

    def values(self, group: Sequence[Episode]) -> list[float]:
        """1 or 0 for each episode."""
        return [indicator(episode.right) for episode in group]


@dataclass(frozen=True)
class Format(Term):
    """Eq. 12."""

    final: Final = "count"

    name = "paramanager/format"
    formula = "(1/T) Σ_t Fmt(y_t)"
    source = "ParaManager Eq. 12"
    meaning = "The share of rounds whose text has the strategy's exact form. A text that cannot be read is a round too."
    parameters: ClassVar[Mapping[str, str]] = {
        "final": "whether the round that ends the run counts: `count` or `leave_out`"
    }

    def __post_init__(self) -> None:
        self._one_of("final", ("count", "leave_out"))

    def values(self, group: Sequence[Episode]) -> list[float]:
        """The share of each episode."""
        return [format_reward([each.exact for each in rounds_of(episode, self.final)]) for episode in group]


@dataclass(frozen=True)
class Parallelism(Term):
    """Eq. 14."""

    theta_par: float = THETA_PAR
    final: Final = "count"

    name = "paramanager/parallelism"
    formula = "1[(1/T) Σ_t n_t ≥ θ_par]"
    source = "ParaManager Eq. 14"
    meaning = "1 if the rounds make enough calls on average."
    parameters: ClassVar[Mapping[str, str]] = {
        "theta_par": "θ_par, calls per round, 0 or more",
        "final": "whether the round that ends the run, with its one call, counts: `count` or `leave_out`",
    }

    def __post_init__(self) -> None:
        self._not_negative("theta_par")
        self._one_of("final", ("count", "leave_out"))

    def values(self, group: Sequence[Episode]) -> list[float]:
        """1 or 0 for each episode."""
        return [parallelism_reward(calls_per_round(episode, self.final), self.theta_par) for episode in group]


@dataclass(frozen=True)
class Tools(Term):
    """Eq. 15."""

    theta_tool: int = THETA_TOOL

    name = "paramanager/tools"
    formula = "1[|U(τ)| ≥ θ_tool]"
    source = "ParaManager Eq. 15"
    meaning = "1 if enough different members were called, `final_answer` left out."
    parameters: ClassVar[Mapping[str, str]] = {"theta_tool": "θ_tool, different members, 0 or more"}

    def __post_init__(self) -> None:
        self._not_negative("theta_tool")

    def values(self, group: Sequence[Episode]) -> list[float]:
        """1 or 0 for each episode."""
        return [tool_reward(tools_of(episode), self.theta_tool) for episode in group]


@dataclass(frozen=True)
class Diversity(Term):
    """Eq. 13."""

    theta_par: float = THETA_PAR
    theta_tool: int = THETA_TOOL
    final: Final = "count"

    name = "paramanager/diversity"
    formula = "½ (R_par + R_tool)"
    source = "ParaManager Eq. 13"
    meaning = "The mean of `paramanager/parallelism` and `paramanager/tools`."
    parameters: ClassVar[Mapping[str, str]] = {**Parallelism.parameters, **Tools.parameters}

    def __post_init__(self) -> None:
        self._parts()

    def _parts(self) -> tuple[Parallelism, Tools]:
        return Parallelism(self.theta_par, self.final), Tools(self.theta_tool)

    def values(self, group: Sequence[Episode]) -> list[float]:
        """0, ½ or 1 for each episode."""
        parallelism, tools = (part.values(group) for part in self._parts())
        # ParaManager Eq. 13.
        return [0.5 * sum(pair) for pair in zip(parallelism, tools, strict=True)]


@dataclass(frozen=True)
class Length(Term):
    """Eq. 16."""

    length_target: float = LENGTH_TARGET
    length_of: Literal["sequence_tokens", "policy_tokens", "tokens"] = "sequence_tokens"

    name = "paramanager/length"
    formula = "1 if L ≤ L_tar, else max(0, (2 L_tar - L) / L_tar)"
    source = "ParaManager Eq. 16"
    meaning = "1 up to the target, 0 from twice the target."
    parameters: ClassVar[Mapping[str, str]] = {
        "length_target": "L_tar, tokens, above 0",
        "length_of": "what L counts: `sequence_tokens` (what the policy wrote and read behind the first prompt), "
        "`policy_tokens` (what it wrote) or `tokens` (of all models)",
    }
    charges = frozenset({"sequence_tokens", "policy_tokens", "tokens"})

    def __post_init__(self) -> None:
        self._above_zero("length_target")
        self._one_of("length_of", ("sequence_tokens", "policy_tokens", "tokens"))

    def values(self, group: Sequence[Episode]) -> list[float]:
        """0 to 1 for each episode."""
        return [soft_target(spent(episode, self.length_of), self.length_target) for episode in group]


@dataclass(frozen=True)
class CostReward(Term):
    """Eq. 17."""

    cost_target: float = COST_TARGET
    final_units: float = FINAL_UNITS

    name = "paramanager/cost"
    formula = "1 if C ≤ C_tar, else max(0, (2 C_tar - C) / C_tar)"
    source = "ParaManager Eq. 17"
    meaning = "1 up to the target, 0 from twice the target. Below the target, spending costs nothing."
    parameters: ClassVar[Mapping[str, str]] = {
        "cost_target": "C_tar, cost units, above 0",
        "final_units": "cost units of `final_answer`, 0 or more: 1 in the paper's table of tools",
    }
    charges = frozenset({"units"})

    def __post_init__(self) -> None:
        self._above_zero("cost_target")
        self._not_negative("final_units")

    def values(self, group: Sequence[Episode]) -> list[float]:
        """0 to 1 for each episode."""
        return [soft_target(cost_units(episode, self.final_units), self.cost_target) for episode in group]


@dataclass(frozen=True)
class Efficiency(Term):
    """Eq. 18."""

    length_target: float = LENGTH_TARGET
    cost_target: float = COST_TARGET
    length_of: Literal["sequence_tokens", "policy_tokens", "tokens"] = "sequence_tokens"
    final_units: float = FINAL_UNITS

    name = "paramanager/efficiency"
    formula = "½ (R_len + R_cost)"
    source = "ParaManager Eq. 18"
    meaning = "The mean of `paramanager/length` and `paramanager/cost`. Right and wrong answers earn it alike."
    parameters: ClassVar[Mapping[str, str]] = {**Length.parameters, **CostReward.parameters}
    charges = Length.charges | CostReward.charges

    def __post_init__(self) -> None:
        self._parts()

    def _parts(self) -> tuple[Length, CostReward]:
        return Length(self.length_target, self.length_of), CostReward(self.cost_target, self.final_units)

    def values(self, group: Sequence[Episode]) -> list[float]:
        """0 to 1 for each episode."""
        length, cost = (part.values(group) for part in self._parts())
        # ParaManager Eq. 18.
        return [0.5 * sum(pair) for pair in zip(length, cost, strict=True)]
