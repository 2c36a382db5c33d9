"""Probes: one thing of one episode is changed, its group is scored again, and only its own reward is compared.

So what is found does not depend on what the episodes of a batch happen to be like: if costlier episodes of a batch are
worse for other reasons, a reward that pays for spending still shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from concertino_train.episodes import Episode, Totals
from concertino_train.rewards.functions import SPENDING
from concertino_train.rewards.reward import Reward

from .report import AuditFinding

_MOST = 32
"""Groups that are probed; each costs a score per episode, kind of spending and step."""
_WHOLE = ("units", "usd", "seconds", "critical_path", "call_seconds")


class Gain(NamedTuple):
    """A change that paid."""

    group: str
    episode: str
    what: str
    before: float
    after: float
    was: float
    now: float


def probe_spending(groups: Mapping[str, Sequence[Episode]], reward: Reward, tolerance: float) -> list[AuditFinding]:
    """Find episodes that would earn more by spending more."""
    gains: dict[str, Gain] = {}
    where: dict[str, set[str]] = {}
    for name, group in _some(groups):
        for gain in _spending_gains(name, group, reward, tolerance):
            where.setdefault(gain.what, set()).add(name)
            best = gains.get(gain.what)
            if best is None or gain.now - gain.was > best.now - best.was:
                gains[gain.what] = gain
    return [_spending_finding(gain, sorted(where[what])) for what, gain in gains.items()]


def _spending_finding(gain: Gain, groups: Sequence[str]) -> AuditFinding:
    return AuditFinding(
        "fail",
        "spending-pays",
        f"episode {gain.episode} earns {gain.now:.4g} instead of {gain.was:.4g} if it spends {gain.after:.4g} instead "
        f"of {gain.before:.4g} {SPENDING[gain.what]}, all else being equal",
        f"Look for a sign: {gain.what} has to enter with a minus, in the bounds it is normalised by too",
        tuple(groups[:5]),
    )


def _spending_gains(name: str, group: Sequence[Episode], reward: Reward, tolerance: float) -> Iterator[Gain]:
    was = [scored.total for scored in reward.score(group)]
    for what in SPENDING:
        spent = [float(getattr(episode.totals, what)) for episode in group]
        for place, episode in enumerate(group):
            for more in _steps(spent, place):
                # In its own group, since a reward may compare: the others stay as they are.
                changed = replace(episode, totals=_with(episode.totals, what, more))
                now = reward.score([*group[:place], changed, *group[place + 1 :]])[place].total
                # Relative for large rewards, whose rounding is larger, too.
                if now > was[place] + tolerance * max(1.0, abs(was[place])):
                    yield Gain(name, episode.id, what, spent[place], more, was[place], now)


def _steps(spent: Sequence[float], place: int) -> list[float]:
    """Larger values to try: the next that another episode spent, the largest, and more than anybody spent."""
    above = [value for value in spent if value > spent[place]]
    # Rewards with a target or a limit change only beyond it, so one step leaves every bound of the group.
    return sorted({*([min(above), max(above)] if above else ()), 2 * max(spent) + 1})


def _with(totals: Totals, what: str, value: float) -> Totals:
    changed: dict[str, Any] = {what: value if what in _WHOLE else int(value)}
    return replace(totals, **changed)


def probe_right(groups: Mapping[str, Sequence[Episode]], reward: Reward, tolerance: float) -> list[AuditFinding]:
    """Find wrong episodes that would earn less by being right."""
    worst: tuple[str, str, float, float] | None = None
    where: list[str] = []
    for name, group in _some(groups):
        was = [scored.total for scored in reward.score(group)]
        for place, episode in enumerate(group):
            if episode.right:
                continue
            # Some terms read the answer itself, so a right verdict alone would be half a change.
            righted = replace(episode, correct=1.0, verdict="right", answer=(episode.expected or (episode.answer,))[0])
            now = reward.score([*group[:place], righted, *group[place + 1 :]])[place].total
            if now < was[place] - tolerance * max(1.0, abs(was[place])):
                where.append(name)
                if worst is None or now - was[place] < worst[3] - worst[2]:
                    worst = name, episode.id, was[place], now
    if worst is None:
        return []
    _, episode_id, before, after = worst
    seen = (
        f"episode {episode_id} earns {after:.4g} instead of {before:.4g} if its answer is right, all else being equal"
    )
    change = "A right answer must never cost reward; look at the weights and signs of what depends on correct"
    return [AuditFinding("fail", "right-hurts", seen, change, tuple(dict.fromkeys(where))[:5])]


def probe_success_first(groups: Mapping[str, Sequence[Episode]], reward: Reward) -> list[AuditFinding]:
    """Find terms by which a wrong episode can earn more than a right one, whatever the batch holds.

    What being right is worth is measured: episodes are scored once as right and once as wrong. Against it stands the
    range of all terms that do not depend on it.
    """
    worth, paid = float("inf"), {}
    for _, group in _some(groups):
        for place, episode in enumerate(group):
            both = [
                reward.score([*group[:place], changed, *group[place + 1 :]])[place]
                for changed in (_judged(episode, right=True), _judged(episode, right=False))
            ]
            worth = min(worth, both[0].total - both[1].total)
            for name, value in both[0].components.items():
                if value == both[1].components[name]:
                    paid[name] = reward.terms[name]
    free = {name: each for name, each in paid.items() if each.when == "always"}
    span = sum(each.weight * (each.term.bounds[1] - each.term.bounds[0]) for each in free.values())
    # Where no term reads the answer, as of single turns, success cannot be compared.
    if span <= worth or len(paid) == sum(each.weight > 0 for each in reward.terms.values()):
        return []
    form = ", ".join(f"{name}: {{when: right}}" for name in free)
    seen = (
        f"being right is worth {worth:.4g}, and {', '.join(free)} together {span:.4g}, whatever the answer: a policy "
        "can earn more by failing well"
    )
    change = f"Let them count in right episodes alone: reward.terms: {{{form}}}; paramanager-success-first is a preset"
    return [AuditFinding("warn", "success-not-first", seen, change)]


def _judged(episode: Episode, *, right: bool) -> Episode:
    answer = (episode.expected or (episode.answer,))[0] if right else ""
    return replace(episode, correct=float(right), verdict="right" if right else "wrong", answer=answer)


def _some(groups: Mapping[str, Sequence[Episode]]) -> Iterable[tuple[str, Sequence[Episode]]]:
    """Groups that are probed: evenly from all of them."""
    names = list(groups)
    # Evenly, as the first groups may all be of one kind.
    step = max(1, len(names) // _MOST)
    return [(name, groups[name]) for name in names[::step][:_MOST]]
