"""What a step of rollouts looks like, in numbers: from episodes alone.

The invariant: figures are means over episodes or shares of them, so steps of different size compare.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from concertino import STOP_REASONS

from concertino_train.episodes import Episode


def episode_figures(episodes: Sequence[Episode], offered: int = 0) -> dict[str, float]:
    """Figures of the rollouts of a step.

    Args:
        episodes: one or more.
        offered: members that could be called; as many as were by default.

    Returns:
        `success`, `answered`, `format`, `truncated`: shares of episodes; `rounds`, `calls`, `tokens` (sampled by the
        policy), `units`, `usd`, `critical_path`: means; `unpriced`: requests of unknown price, in all; `members`: how
        many different ones were called, of those `offered`; `tool_entropy`: of the shares of calls, 1 where all that
        are offered are called alike, 0 where one has all calls; `ok_calls`: share of calls; `stop/<reason>`: shares.
    """
    count = max(1, len(episodes))
    called: Counter[str] = Counter()
    for episode in episodes:
        called.update(call.name for call in episode.calls if call.kind != "unknown")
    calls = [call for episode in episodes for call in episode.calls]
    figures = {
        "success": sum(episode.right for episode in episodes) / count,
        "correct": math.fsum(episode.correct for episode in episodes) / count,
        "answered": sum(episode.answered for episode in episodes) / count,
        "format": sum(_exact(episode) for episode in episodes) / count,
        "truncated": sum(episode.truncated for episode in episodes) / count,
        "rounds": sum(len(episode.policy_rounds) for episode in episodes) / count,
        "calls": len(calls) / count,
        "tokens": sum(episode.totals.policy_tokens for episode in episodes) / count,
        "units": math.fsum(episode.totals.units for episode in episodes) / count,
        "usd": math.fsum(episode.totals.usd for episode in episodes) / count,
        "unpriced": float(sum(episode.totals.unpriced - episode.totals.policy_unpriced for episode in episodes)),
        "critical_path": math.fsum(episode.totals.critical_path for episode in episodes) / count,
        "members": float(len(called)),
        "offered": float(max(offered, len(called))),
        "tool_entropy": evenness(called, offered),
        "ok_calls": sum(call.ok for call in calls) / len(calls) if calls else 0.0,
    }
    stops = Counter(episode.stop for episode in episodes)
    return figures | {f"stop/{reason}": stops[reason] / count for reason in STOP_REASONS}


_IN_ALL = frozenset(("rows", "rows/trained", "rows/truncated", "groups", "sampled", "unpriced", "tokens_per_second"))
"""Figures that are told in all, and not as means."""
TESTS = "eval/tests"
"""How many tests the figures `eval/...` are of."""


def over_ranks(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The figures of all ranks as one: sums of what is told in all, means of the rest; tests count by their number.

    Args:
        figures: of each rank; a figure that a rank lacks does not count there.
    """
    found: dict[str, float] = {}
    for name in dict.fromkeys(name for each in figures for name in each):
        values = [each[name] for each in figures if name in each]
        weights = [each.get(TESTS, 1.0) if name.startswith("eval/") else 1.0 for each in figures if name in each]
        total = math.fsum(weight * value for weight, value in zip(weights, values, strict=True))
        found[name] = math.fsum(values) if name in _IN_ALL or name == TESTS else total / (math.fsum(weights) or 1.0)
    return found


def evenness(counts: Mapping[str, int], among: int = 0) -> float:
    """Entropy of shares as a part of the greatest that so many names can have: 0 to 1; 0 for one name or none.

    Args:
        counts: by name.
        among: names that there are; those with a count by default.
    """
    total = sum(counts.values())
    shares = [number / total for number in counts.values() if number]
    if len(shares) < 2:
        return 0.0
    # By as many as are offered, so that it does not rise when members are forgotten.
    return -math.fsum(share * math.log(share) for share in shares) / math.log(max(among, len(shares)))


def _exact(episode: Episode) -> bool:
    return all(round_.exact for round_ in episode.policy_rounds)
