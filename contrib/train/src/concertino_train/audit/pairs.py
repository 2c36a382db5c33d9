"""Pairs: what a reward does to recorded episodes: right ones against each other, and wrong ones against right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from concertino_train.episodes import Episode
from concertino_train.groups.keys import TOLERANCE
from concertino_train.rewards.reward import Reward, Scored

from .report import WRONG_ABOVE_RIGHT_FAIL, AuditFinding, Level

_COSTS = ("units", "usd", "seconds")
Scores = Mapping[str, Sequence[Scored]]


def higher_cost_rewarded(groups: Mapping[str, Sequence[Episode]], scores: Scores, reward: Reward) -> list[AuditFinding]:
    """Right episodes that spend more, and nothing less, and earn more."""
    above, pairs, example = 0, 0, ""
    paid: Counter[str] = Counter()
    where: list[str] = []
    for name, costly, cheap, one, other in _right_pairs(groups, scores):
        pairs += 1
        if one.total <= other.total + TOLERANCE:
            continue
        above += 1
        where.append(name)
        gained = {part: one.components[part] - other.components[part] for part in one.components}
        paid.update(part for part, gain in gained.items() if gain > TOLERANCE)
        example = example or (
            f"{costly.id} ({_spent(costly)}) earns {one.total:.4g}, {cheap.id} ({_spent(cheap)}) {other.total:.4g}"
        )
    if not above:
        return []
    parts = ", ".join(f"{part} ({times} times)" for part, times in paid.most_common(3)) or "rounding"
    seen = f"in {above} of {pairs} pairs of right episodes the costlier one earns more, through {parts}; {example}"
    change = (
        "If that is not what you want to pay for, lower the weight of these components, or raise that of what is spent"
    )
    return [AuditFinding("warn", "higher-cost-rewarded", seen, change, tuple(dict.fromkeys(where))[:5])]


def wrong_above_right(groups: Mapping[str, Sequence[Episode]], scores: Scores) -> list[AuditFinding]:
    """Wrong episodes that earn more than right ones of their group."""
    above, cheaper, pairs, example = 0, 0, 0, ""
    where: list[str] = []
    for name, group in groups.items():
        marked = list(zip(group, scores[name], strict=True))
        for right, high in (each for each in marked if each[0].right):
            for wrong, low in (each for each in marked if not each[0].right):
                pairs += 1
                if low.total > high.total + TOLERANCE:
                    above += 1
                    cheaper += right.totals.units > wrong.totals.units or right.totals.usd > wrong.totals.usd
                    where.append(name)
                    example = example or f"{wrong.id} earns {low.total:.4g}, {right.id} {high.total:.4g}"
    if not above:
        return []
    seen = f"in {above} of {pairs} pairs the wrong episode earns more ({cheaper} times the cheaper one); {example}"
    change = "Raise the weight of correctness until it is worth more than everything else together, or pay the rest "
    change += "only for right answers"
    level: Level = "fail" if above / pairs > WRONG_ABOVE_RIGHT_FAIL else "warn"
    return [AuditFinding(level, "wrong-above-right", seen, change, tuple(dict.fromkeys(where))[:5])]


def _right_pairs(
    groups: Mapping[str, Sequence[Episode]], scores: Scores
) -> Iterator[tuple[str, Episode, Episode, Scored, Scored]]:
    """Pairs of which the first spends more of something and less of nothing."""
    for name, group in groups.items():
        right = [(each, scored) for each, scored in zip(group, scores[name], strict=True) if each.right]
        for costly, one in right:
            for cheap, other in right:
                if _costlier(costly, cheap):
                    yield name, costly, cheap, one, other


def _costlier(one: Episode, other: Episode) -> bool:
    """Prices that are not known are not compared."""
    known = [what for what in _COSTS if what != "usd" or not (one.totals.unpriced or other.totals.unpriced)]
    more = [getattr(one.totals, what) - getattr(other.totals, what) for what in known]
    return all(each >= 0 for each in more) and any(each > 0 for each in more)


def _spent(episode: Episode) -> str:
    totals = episode.totals
    usd = "" if totals.unpriced else f", ${totals.usd:.4g}"
    return f"{totals.units:g} units{usd}, {totals.seconds:.3g} s"
