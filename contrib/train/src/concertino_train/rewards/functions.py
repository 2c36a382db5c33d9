"""The shapes that several rewards share, as functions of numbers.

The invariant: no function here gives NaN or an infinite number for finite input, and each says which way it is
monotone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from concertino import UsageError

from concertino_train.episodes import Episode
from concertino_train.settings import did_you_mean

from .term import UnpricedError

SPENDING: dict[str, str] = {
    "units": "cost units",
    "usd": "$",
    "seconds": "s of wall time",
    "critical_path": "s with unlimited parallelism",
    "call_seconds": "s summed over the policy's calls",
    "policy_tokens": "tokens that the policy sampled",
    "sequence_tokens": "tokens of the conversation behind the first prompt",
    "tokens": "tokens of all models",
}
"""What an episode spends, by the field of `Totals`, with its unit."""


def indicator(holds: bool) -> float:
    """1 if it holds, else 0."""
    return 1.0 if holds else 0.0


def soft_target(value: float, target: float) -> float:
    """1 up to a target, then a straight line to 0 at twice the target: max(0, (2·target - value) / target).

    ParaManager Eq. 16 and 17. Falls with `value`, rises with `target`.

    Args:
        value: 0 or more.
        target: in the same unit, above 0.

    Returns:
        0 to 1.
    """
    # ParaManager Eq. 16 and 17: 1 at the target and 0 at twice the target meet in a straight line.
    return 1.0 if value <= target else max(0.0, (2.0 * target - value) / target)


def min_max(values: Sequence[float]) -> list[float]:
    """Each value by its place between least and greatest: (v - min) / (max - min); 0 for all where they are equal.

    ToolOrchestra section 3.2. Each result rises with its own value, all others held.

    Args:
        values: G numbers.

    Returns:
        G numbers, 0 to 1.
    """
    if not values:
        return []
    least, most = min(values), max(values)
    return [_place(value, least, most) for value in values]


def between(value: float, least: float, most: float) -> float:
    """(value - least) / (most - least), which may lie outside of 0 to 1; 0 where the two are equal."""
    return _place(value, least, most)


def overlong(length: float, longest: float, margin: float) -> float:
    """0 up to `longest - margin`, then a straight line to -1 at `longest`, and -1 beyond.

    DAPO (arXiv 2503.14476) Eq. 13. Falls with `length`.

    Args:
        length: tokens.
        longest: tokens that are allowed at most.
        margin: tokens before that from which on it is punished; above 0, at most `longest`.

    Returns:
        -1 to 0.
    """
    # DAPO Eq. 13.
    return -min(1.0, max(0.0, (length - (longest - margin)) / margin))


def spent(episode: Episode, of: str, *, policy: bool = True, who: str = "this reward") -> float:
    """How much of one thing an episode spent.

    Args:
        episode: finished.
        of: a key of `SPENDING`.
        policy: for `usd`: whether the policy's own tokens count.
        who: names the reward in an error.

    Returns:
        0 or more, in the unit of `SPENDING[of]`.

    Raises:
        UnpricedError: $ are asked for, and a price is not known.
        UsageError: this cannot be spent.
    """
    if of not in SPENDING:
        raise UsageError(f"of={of!r}: {did_you_mean(of, list(SPENDING))}")
    totals = episode.totals
    if of != "usd":
        return float(getattr(totals, of))
    unknown = totals.unpriced - (0 if policy else totals.policy_unpriced)
    if unknown > 0:
        raise UnpricedError(_unpriced(episode, unknown, policy, who))
    # Rounding of sums may leave a little less than the policy's own.
    return totals.usd if policy else max(0.0, totals.usd - totals.policy_usd)


def _unpriced(episode: Episode, unknown: int, policy: bool, who: str) -> str:
    own = episode.totals.policy_unpriced if policy else 0
    parts = [f"{own} of the policy itself"] if own else []
    if unknown > own:
        named = f" ({', '.join(episode.unpriced)})" if episode.unpriced else ""
        parts.append(f"{unknown - own} of members{named}")
    fixes = ["give these models prices (`prices` in a pool file)"]
    if own:
        fixes.append("leave the policy's own tokens out (`money: calls`)")
    fixes.append("charge units, tokens or seconds instead of $")
    return (
        f"{who} charges $, but episode {episode.id!r} has {unknown} requests of unknown price: {' and '.join(parts)}; "
        f"an unknown price is not 0. {', or '.join(fixes).capitalize()}"
    )


def _place(value: float, least: float, most: float) -> float:
    width = most - least
    # Two finite values may be infinitely far apart in floating point.
    if not 0 < width < math.inf:
        return 0.0
    return (value - least) / width
