"""ToolOrchestra (arXiv 2511.21689), section 3.2: outcome times a preference vector over normalised features.

The features of a rollout are the number of calls of each tool, the outcome, minus its $ and minus its seconds. Each is
normalised by least and greatest over the rollouts of the same question, weighted with what the user prefers, and added
up; a rollout that does not solve the task gets 0.

The released code differs from the paper in a way that turns the reward round: see `as_released`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar, Literal

from concertino import UsageError
from concertino_bench.metrics import Preference

from concertino_train.episodes import Episode

from .functions import between, indicator, min_max, spent
from .term import Term, Variant

Clock = Literal["wall", "critical_path", "calls"]
_CLOCKS = {"wall": "seconds", "critical_path": "critical_path", "calls": "call_seconds"}
ToolFeature = Literal["count", "share"]
NO_PREFERENCE = Preference()
"""All weights are 0."""


# -- functions of numbers ----------------------------------------------------------------------------------------------


def normalised(features: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """M_normalized: every feature by its place between the least and the greatest of the group.

    Args:
        features: G rows, M of each rollout, with the same names: counts, `accuracy`, -$ and -seconds.

    Returns:
        G rows, each value 0 to 1; a feature that is the same for all is 0 for all.
    """
    columns = {name: min_max([row[name] for row in features]) for name in (features[0] if features else ())}
    return [{name: column[place] for name, column in columns.items()} for place in range(len(features))]


def preference_reward(
    features: Sequence[Mapping[str, float]], solved: Sequence[bool], weights: Sequence[Mapping[str, float]]
) -> list[float]:
    """R(τ) = M_normalized · P if the task is solved, else 0.

    Args:
        features: G rows: counts by tool, `accuracy` (0 or 1), `cost` (-$, 0 or less), `latency` (-seconds).
        solved: G marks.
        weights: G rows, P of each rollout, 0 to 1 by the same names.

    Returns:
        G numbers, 0 to the sum of the weights. Each falls with its own $ and seconds, all others held.
    """
    rows = zip(normalised(features), solved, weights, strict=True)
    # ToolOrchestra §3.2, R(τ): a rollout that solves nothing earns nothing, however cheap it was.
    return [sum(p[name] * row[name] for name in p) if mark else 0.0 for row, mark, p in rows]


def released_reward(
    features: Sequence[Mapping[str, float]], solved: Sequence[bool], weights: Sequence[Mapping[str, float]]
) -> list[float]:
    """What the released code computes of the same features. Not the paper's reward: it rises with $ and seconds.

    Three differences. Least and greatest of cost and latency are those of -$ and -seconds, as in the paper, but what is
    normalised is +$ and +seconds. The loop over tools runs over accuracy, cost and latency too, with a count of 0 for
    each, which adds a constant to every solved rollout. The least count of a tool is that of the rollouts that used it,
    so a rollout that did not use it gets less than 0.

    Args:
        features, solved, weights: as for `preference_reward`.

    Returns:
        G numbers, without bounds.
    """
    if not features:
        return []
    bounds = {name: _released_bounds(name, [row[name] for row in features]) for name in features[0]}
    rows = zip(features, solved, weights, strict=True)
    return [sum(p[n] * _released_value(n, row[n], bounds[n]) for n in p) if mark else 0.0 for row, mark, p in rows]


def _released_bounds(name: str, column: Sequence[float]) -> tuple[float, float]:
    # The least count is taken over the rollouts that used the tool, as the released code does.
    used = column if name in _MEASURES else [value for value in column if value > 0]
    return (min(used), max(used)) if used else (0.0, 0.0)


def _released_value(name: str, value: float, bounds: tuple[float, float]) -> float:
    if name not in _MEASURES:
        return between(value, *bounds)
    plugged_in = value if name == "accuracy" else -value
    # Cost and latency are normalised as +$ and +seconds between bounds of -$ and -seconds; and the released loop over
    # tools meets all three measures with a count of 0.
    return between(0.0, *bounds) + between(plugged_in, *bounds)


_MEASURES = ("accuracy", "cost", "latency")


# -- what the functions read of an episode -----------------------------------------------------------------------------


def tool_feature(episode: Episode, pattern: str, feature: ToolFeature = "count") -> float:
    """m_t: how often members whose name fits were called, at any depth; or their share of all calls."""
    count = sum(times for name, times in episode.uses.items() if fnmatchcase(name, pattern))
    if feature == "count":
        return float(count)
    # Without any call the share is 0 and not undefined.
    return count / max(1, sum(episode.uses.values()))


# -- terms -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OutcomeReward(Term):
    """r_outcome."""

    name = "toolorchestra/outcome"
    formula = "1[solved(τ)]"
    source = "ToolOrchestra §3.2, r_outcome"
    meaning = "1 if the verdict is right."

    def values(self, group: Sequence[Episode]) -> list[float]:
        """1 or 0 for each episode."""
        return [indicator(episode.right) for episode in group]


@dataclass(frozen=True)
class PreferenceReward(Term):
    """R(τ)."""

    preference: Preference | None = None
    variant: Variant = "paper"
    clock: Clock = "wall"
    money: Literal["all", "calls"] = "all"
    tools: ToolFeature = "count"

    name = "toolorchestra/preference"
    formula = (
        "R(τ) = M_norm(τ) · P if solved(τ), else 0; M = [calls of t_1 … t_n, r_outcome, -$(τ), -Clock(τ)]; "
        "M_norm[k] = (M[k] - min M[k]) / (max M[k] - min M[k]) over the group, 0 where max = min"
    )
    source = "ToolOrchestra §3.2, the equation of R(τ)"
    meaning = (
        "How well a right answer was reached the way the user prefers, compared with the other rollouts of the "
        "question. A weight on the outcome only shifts solved against unsolved ones: where all are solved, it is 0."
    )
    parameters: ClassVar[Mapping[str, str]] = {
        "preference": "P for episodes that bring none: {members: {pattern: weight}, accuracy, usd, seconds}, each "
        "weight 0 to 1",
        "variant": "`paper` or `as_released`",
        "clock": "what Clock(τ) is: `wall`, `critical_path`, or `calls`, the sum over calls (the released code's)",
        "money": "what $(τ) is: `all`, or `calls` to leave out the policy's own tokens",
        "tools": "`count`, as in the paper, where more calls of a preferred tool always pay; or `share` of all calls",
    }
    differences = (
        "The released code keeps the bounds of -$ and -seconds and normalises +$ and +seconds: the most expensive and "
        "slowest right answer gets the most. Three right answers for $1, $2 and $4 under a preference for little cost "
        "get 3.0, 3.33 and 4.0; the paper's formula gives 1, 0.67 and 0. It also adds a constant to solved rollouts "
        "for accuracy, cost and latency, and gives less than 0 for a preferred tool that was not used."
    )
    charges = frozenset({"usd", "seconds", "critical_path", "call_seconds"})

    def __post_init__(self) -> None:
        self._one_of("variant", ("paper", "as_released"))
        self._one_of("clock", tuple(_CLOCKS))
        self._one_of("money", ("all", "calls"))
        self._one_of("tools", ("count", "share"))

    @property
    def bounds(self) -> tuple[float, float]:
        """0 to the sum of the weights; none as released, or where every episode brings its own weights."""
        if self.variant == "as_released":
            return -float("inf"), float("inf")
        return 0.0, float("inf") if self.preference is None else sum(_weights(self.preference).values())

    def values(self, group: Sequence[Episode]) -> list[float]:
        """The reward of each episode."""
        preferences = [self._preference(episode) for episode in group]
        # Least and greatest are over the group, so all its rows need the same features.
        patterns = sorted({name for each in preferences for name in each.members})
        usd = any(each.usd for each in preferences)
        features = [self._features(episode, patterns, usd) for episode in group]
        weights = [_weights(each, patterns) for each in preferences]
        reward: Callable[..., list[float]] = preference_reward if self.variant == "paper" else released_reward
        return reward(features, [episode.right for episode in group], weights)

    def _preference(self, episode: Episode) -> Preference:
        preference = episode.preference or self.preference
        if preference is None:
            raise UsageError(
                f"{self.name}: episode {episode.id!r} has no preference, and the reward has none to fall back on; set "
                "Episode.preference, or `preference: {accuracy: 1, usd: 0.5}` in the reward"
            )
        return preference

    def _features(self, episode: Episode, patterns: Sequence[str], usd: bool) -> dict[str, float]:
        """M of one episode; $ are looked at only where somebody cares for them, since they may be unknown."""
        cost = spent(episode, "usd", policy=self.money == "all", who=self.name) if usd else 0.0
        counts = {f"tool:{each}": tool_feature(episode, each, self.tools) for each in patterns}
        measures = (indicator(episode.right), -cost, -spent(episode, _CLOCKS[self.clock]))
        return {**counts, **dict(zip(_MEASURES, measures, strict=True))}


@dataclass(frozen=True)
class PreferenceContrast(Term):
    """How much better an episode fits its own preference than another one."""

    against: Preference = NO_PREFERENCE
    most_usd: float = 1.0
    most_seconds: float = 60.0
    clock: Clock = "wall"
    money: Literal["all", "calls"] = "all"

    name = "toolorchestra/contrast"
    formula = (
        "P · F(τ) - A · F(τ); F = [share of the calls that went to t_1 … t_n, r_outcome, 1 - min(1, $(τ) / most_usd), "
        "1 - min(1, Clock(τ) / most_seconds)]"
    )
    source = "here"
    meaning = (
        "How well the user's preference P fits what was done, less how well A fits it. What pleases under every "
        "preference earns nothing, so the policy has to tell preferences apart. The scales are absolute: it pays where "
        "all rollouts of a question are right, too. Beside a term for right answers, of `when: right` alone."
    )
    parameters: ClassVar[Mapping[str, str]] = {
        "against": "A, as a preference: the mean of all preferences of the training",
        "most_usd": "$ of a rollout that saves nothing, above 0",
        "most_seconds": "seconds of a rollout that saves nothing, above 0",
        "clock": PreferenceReward.parameters["clock"],
        "money": PreferenceReward.parameters["money"],
    }
    charges = frozenset({"usd", "seconds", "critical_path", "call_seconds"})

    def __post_init__(self) -> None:
        self._above_zero("most_usd", "most_seconds")
        self._one_of("clock", tuple(_CLOCKS))
        self._one_of("money", ("all", "calls"))

    @property
    def bounds(self) -> tuple[float, float]:
        """From minus the weights of `against`, without an upper bound: every episode brings its own weights."""
        return -sum(_weights(self.against).values()), float("inf")

    def values(self, group: Sequence[Episode]) -> list[float]:
        """The difference of each episode; 0 where the user prefers nothing."""
        return [self._value(episode) for episode in group]

    def _value(self, episode: Episode) -> float:
        own = episode.preference
        return 0.0 if own is None else self._fit(episode, own) - self._fit(episode, self.against)

    def _fit(self, episode: Episode, preference: Preference) -> float:
        """P · F(τ). $ are looked at only where the preference weighs them, since they may be unknown."""
        usd = spent(episode, "usd", policy=self.money == "all", who=self.name) if preference.usd else 0.0
        seconds = spent(episode, _CLOCKS[self.clock])
        return (
            sum(weight * tool_feature(episode, name, "share") for name, weight in preference.members.items())
            + preference.accuracy * indicator(episode.right)
            + preference.usd * (1 - min(1.0, usd / self.most_usd))
            + preference.seconds * (1 - min(1.0, seconds / self.most_seconds))
        )


def _weights(preference: Preference, patterns: Sequence[str] | None = None) -> dict[str, float]:
    names = sorted(preference.members) if patterns is None else patterns
    tools = {f"tool:{name}": preference.members.get(name, 0.0) for name in names}
    return {**tools, "accuracy": preference.accuracy, "cost": preference.usd, "latency": preference.seconds}
