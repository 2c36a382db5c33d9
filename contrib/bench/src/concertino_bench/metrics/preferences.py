"""How well systems follow what a user prefers: tools, accuracy, cost, latency.

Two definitions, both ToolOrchestra's. `preference_adherence` normalises by minimum and maximum over the systems that
are compared, as its reward does; `preference_reward` divides by a baseline system, as its evaluation does. Both use
the paper's sign: spending more money or time never gains. Wrong answers score 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from concertino_bench.tasks.item import Item, Key

from .metric import Metric, Terms, by_task
from .spending import known_usd

PREFERENCE_ADHERENCE = Metric(
    "preference_adherence",
    "preference adherence",
    "reward",
    "higher",
    "0 to the sum of the weights",
    "mean over tasks of R, where R = Σ_k P[k] (M[k] - min M[k]) / (max M[k] - min M[k]) if the answer is right, else "
    "0; M = calls of each tool, outcome, -$, -seconds; min and max over all systems' runs of the task; 0 where equal",
    "ToolOrchestra §3.2, the equation of R(τ)",
    "How well a system does what the user prefers, compared with the other systems of the results. It changes when a "
    "system is added.",
    "preference_adherence(all_items, preference)(items)",
    strict=True,
)
PREFERENCE_REWARD = Metric(
    "preference_reward",
    "preference reward",
    "reward",
    "higher",
    "0 or more",
    "mean over tasks of R, where R = Σ_k P[k] N[k] if the answer is right, else 0; N = M / max(1, M0) for tools and "
    "outcome, N = M0 / max(1, M) for cost and seconds; M0 = the baseline's run of the same task",
    "ToolOrchestra, Appendix “Calculation of rewards for preference-aware benchmark”",
    "The same against one baseline system. Because of max(1, ·) the unit of money matters: it is 1 cent here, and a "
    "run under 1 cent or 1 second gains nothing more by being cheaper or quicker. It is a mean, so that sets of "
    "different size can be compared; the paper reports the *sum* over its examples: the mean times the number of them.",
    "preference_reward(all_items, preference, baseline)(items)",
    strict=True,
)
CENT = 0.01


@dataclass(frozen=True)
class Preference:
    """What a user would like to have more of: weights from 0, no matter, to 1.

    Attributes:
        members: weight of each tool, agent or model, by name or pattern ("search/*"): the user likes it to be used.
        accuracy, usd, seconds: weights of the outcome, of little money, of little time.
    """

    members: Mapping[str, float] = field(default_factory=dict)
    accuracy: float = 0.0
    usd: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        weights = {**self.members, "accuracy": self.accuracy, "usd": self.usd, "seconds": self.seconds}
        for name, weight in weights.items():
            if not 0 <= weight <= 1:
                raise ValueError(f"Preference({name}={weight!r}): expected a weight from 0 to 1")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Preference:
        """Read `{"members": {"search/*": 1}, "accuracy": 1, "usd": 0.5, "seconds": 0}`.

        Raises:
            ValueError: another key, or a weight that is none.
        """
        unknown = sorted(set(data) - {"members", "accuracy", "usd", "seconds"})
        if unknown:
            raise ValueError(f"preference has {unknown}: expected members, accuracy, usd and seconds")
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"members": dict(self.members), "accuracy": self.accuracy, "usd": self.usd, "seconds": self.seconds}


def preference_adherence(items: Iterable[Item], preference: Preference) -> Metric:
    """The metric, normalised over all `items`; call it with the items of one system."""
    names, weights = _weights(preference)
    rewards: dict[Key, float | None] = {}
    for group in by_task(items).values():
        features = {item.key: _features(item, names) for item in group if not item.error}
        known = [[value for value in column if value is not None] for column in zip(*features.values(), strict=True)]
        low, high = ([end(column, default=None) for column in known] for end in (min, max))
        for item in group:
            # A run that did not begin is not right, so it earns nothing; it has no features that would set an end.
            rewards[item.key] = 0.0 if item.error else _min_max(item, features[item.key], low, high, weights)
    return PREFERENCE_ADHERENCE.named("preference_adherence", _mean_of(rewards))


def preference_reward(items: Iterable[Item], preference: Preference, baseline: str) -> Metric:
    """The metric against the system `baseline`; call it with the items of one system.

    It is the mean over tasks; the paper's result is the sum over examples, `value.value * value.tasks`. Items of tasks
    that the baseline has not are missing.

    Raises:
        ValueError: the system does not exist.
    """
    items = list(items)
    names, weights = _weights(preference)
    base = {item.key[1:]: item for item in items if item.key.system == baseline and not item.error}
    if not base:
        systems = sorted({item.key.system for item in items})
        raise ValueError(f"baseline={baseline!r}: no items of that system; there are {', '.join(systems)}")
    rewards: dict[Key, float | None] = {}
    for item in items:
        # A baseline is often run once only; its first sample then stands for every sample.
        first = base.get(item.key[1:]) or base.get((item.key.task, 0))
        if first is not None:
            rewards[item.key] = _against(item, first, names, weights)
    return PREFERENCE_REWARD.named("preference_reward", _mean_of(rewards))


def _weights(preference: Preference) -> tuple[list[str], list[float]]:
    """The names of members, and the weights of `_features`."""
    names = sorted(preference.members)
    of_members = [preference.members[name] for name in names]
    return names, [*of_members, preference.accuracy, preference.usd, preference.seconds]


def _features(item: Item, names: Sequence[str]) -> list[float | None]:
    usd = known_usd(item)
    counts = [float(sum(use.calls for n, use in item.members.items() if fnmatchcase(n, name))) for name in names]
    return [*counts, float(item.right), None if usd is None else -usd, -item.seconds]


def _min_max(
    item: Item,
    row: Sequence[float | None],
    low: Sequence[float | None],
    high: Sequence[float | None],
    weights: Sequence[float],
) -> float | None:
    """R of one run; None if something that has a weight is unknown."""
    if not item.right:
        return 0.0
    total = 0.0
    for value, least, most, weight in zip(row, low, high, weights, strict=True):
        if not weight:
            continue
        if value is None or least is None or most is None:
            return None
        # Where all runs are equal nobody gains: the formula would divide by 0.
        total += weight * (value - least) / (most - least) if most > least else 0.0
    return total


def _against(item: Item, base: Item, names: Sequence[str], weights: Sequence[float]) -> float | None:
    if not item.right:
        return 0.0
    more = len(weights) - 2  # of these the user wants more, of the last two less
    total = 0.0
    rows = zip(_features(item, names), _features(base, names), weights, strict=True)
    for k, (value, was, weight) in enumerate(rows):
        if not weight:
            continue
        if value is None or was is None:
            return None
        unit = CENT if k == more else 1.0
        # Features of money and time are negative, so that more is better in all of them; here the amounts are wanted.
        above, below = (value, was) if k < more else (-was / unit, -value / unit)
        total += weight * above / max(1.0, below)
    return total


def _mean_of(rewards: Mapping[Key, float | None]) -> Callable[[Sequence[Item]], Terms | None]:
    def terms(items: Sequence[Item]) -> Terms | None:
        known = [reward for item in items if (reward := rewards.get(item.key)) is not None]
        unknown = sum(1 for item in items if item.key in rewards) - len(known)
        missing = len(items) - len(known)
        return Terms(sum(known) / len(known), 1.0, missing, unknown) if known else Terms(0.0, 0.0, missing, unknown)

    return terms
