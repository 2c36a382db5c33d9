"""The batch: sizes and purity of groups, how many different rewards they have, rows with their masks, filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from concertino_train.episodes import Episode
from concertino_train.groups.filters import Filters
from concertino_train.groups.keys import TOLERANCE, GroupKey, Groups
from concertino_train.groups.statistics import GroupStatistics
from concertino_train.rewards.reward import Scored

from .report import HOMOGENEITY, HOMOGENEOUS_WARN, ZERO_VARIANCE_FAIL, ZERO_VARIANCE_WARN, AuditFinding


@dataclass(frozen=True)
class AuditRow:
    """A row of a training batch, as far as the audit looks at it.

    Attributes:
        key: of its group.
        prompt: digest of its prompt (`prompt_digest`).
        mask: shape (T,): 1 for tokens that the policy wrote, else 0.
        credit: shape (T,): reward or advantage of each token; or one number for all tokens of the row.
    """

    key: GroupKey
    prompt: str
    mask: Sequence[int]
    credit: Sequence[float] | float


_BY_PLACE, _FEWEST = 0.9, 10
"""Share of first calls to one place from which on it decides, and how many first calls that takes."""


def look_at_pools(groups: Mapping[str, Sequence[Episode]]) -> list[AuditFinding]:
    """Whether the batch can show that members are chosen by what is written of them."""
    called = [each for group in groups.values() for each in group if each.first is not None and each.offered > 2]
    if len(called) < _FEWEST or len(groups) < 2:
        return []
    change = "pool.variation.unseen=[names, order, cards] draws a pool for each question; more: the page on recipes"
    if len({each.pool for each in called}) == 1:
        seen = f"all {len(groups)} questions have one pool: what is learnt may be its names and places"
        return [AuditFinding("note", "one-pool", seen, change)]
    places: dict[str, Counter[int]] = {
        "from the beginning": Counter(each.first or 0 for each in called),
        "from the end": Counter(each.offered - 1 - (each.first or 0) for each in called),
    }
    for side, counts in places.items():
        ((place, count),) = counts.most_common(1)
        if count >= _BY_PLACE * len(called):
            seen = f"{count} of {len(called)} first calls go to place {place + 1} {side}, whatever stands there"
            told = "Measure it with train eval --counterfactuals; vary the order in training (pool.variation.unseen)"
            return [AuditFinding("warn", "choice-by-place", seen, told)]
    return []


def look_at_groups(groups: Mapping[str, Sequence[Episode]]) -> list[AuditFinding]:
    """Episodes in the wrong group, twice, or alone."""
    findings = []
    mixed = [name for name, group in groups.items() if len({episode.group for episode in group}) > 1]
    if mixed:
        found = sorted({episode.group for episode in groups[mixed[0]]})
        seen = f"{len(mixed)} of {len(groups)} groups hold episodes of several groups, {mixed[0]} those of {found[:4]}"
        change = "Group by Episode.group: what is compared has to answer the same prompt"
        findings.append(AuditFinding("fail", "mixed-group", seen, change, tuple(mixed[:5])))
    twice = [name for name, group in groups.items() if max(Counter(each.id for each in group).values(), default=0) > 1]
    if twice:
        seen = f"{len(twice)} groups hold an episode more than once"
        change = "Leave padding out of groups: a copy moves the mean, and makes rewards more alike than they are"
        findings.append(AuditFinding("warn", "repeated-episode", seen, change, tuple(twice[:5])))
    alone = [name for name, group in groups.items() if len(group) == 1]
    if alone:
        everything = len(alone) == len(groups)
        seen = f"{len(alone)} of {len(groups)} groups have one episode, whose advantage is 0"
        change = "Sample several rollouts per question; with turns as groups, branch at every turn (tree sampling)"
        findings.append(AuditFinding("fail" if everything else "warn", "group-of-one", seen, change, tuple(alone[:5])))
    return findings


def look_at_rewards(
    groups: Mapping[str, Sequence[Episode]],
    scores: Mapping[str, Sequence[Scored]],
    figures: GroupStatistics,
) -> list[AuditFinding]:
    """Groups from which nothing is learnt."""
    findings = []
    compared = figures.groups - figures.singletons
    if figures.rows > 1 and figures.most - figures.least <= TOLERANCE:
        seen = f"all {figures.rows} rewards are {figures.least:.4g}"
        change = "Check that the grader grades, and that the reward reads what differs between rollouts"
        findings.append(AuditFinding("fail", "all-equal", seen, change))
    # The lesser of both bounds: with a failure below the warning it still has to be found.
    elif compared and figures.zero_variance_share >= min(ZERO_VARIANCE_WARN, ZERO_VARIANCE_FAIL):
        fails = figures.zero_variance_share >= ZERO_VARIANCE_FAIL
        seen = f"{figures.zero_variance} of {compared} groups have equal rewards"
        change = "Take harder or easier questions, those with mixed outcomes, or switch dynamic sampling on"
        findings.append(AuditFinding("fail" if fails else "warn", "zero-variance", seen, change))
    if compared and figures.homogeneous_share >= HOMOGENEOUS_WARN:
        seen = f"{figures.homogeneous} of {compared} groups have rewards with a std below {HOMOGENEITY:g}"
        change = "Filter them (Filters(homogeneity=...)), or do not divide by the std of the group"
        findings.append(AuditFinding("warn", "homogeneous", seen, change))
    equal = [name for name in groups if _differ(groups[name]) and _all_equal(scores[name], TOLERANCE)]
    if equal:
        seen = f"{len(equal)} groups have one reward for episodes that differ in correctness, calls or turns"
        change = "If each episode was scored on a world of its own, the reward does not read what differs; if not, "
        change += "score every candidate on the world in which it acted"
        findings.append(AuditFinding("warn", "equal-rewards", seen, change, tuple(equal[:5])))
    return findings


def _differ(group: Sequence[Episode]) -> bool:
    marks = {(each.correct, tuple(call.name for call in each.calls), repr(each.turns)) for each in group}
    return len(marks) > 1


def _all_equal(scored: Sequence[Scored], tolerance: float) -> bool:
    totals = [each.total for each in scored]
    return max(totals) - min(totals) <= tolerance


def look_at_rows(rows: Sequence[AuditRow]) -> list[AuditFinding]:
    """Prompts of groups, and credit on tokens that are not the policy's."""
    prompts: dict[GroupKey, set[str]] = {}
    for row in rows:
        prompts.setdefault(row.key, set()).add(row.prompt)
    findings = []
    if mixed := [str(key) for key, found in prompts.items() if len(found) > 1]:
        seen = f"{len(mixed)} of {len(prompts)} groups of rows have more than one prompt"
        change = "Rewards are comparable behind one identical prompt only; put role and turn into the key"
        findings.append(AuditFinding("fail", "mixed-group", seen, change, tuple(mixed[:5])))
    masked = [(place, row) for place, row in enumerate(rows) if _on_masked(row)]
    if masked:
        place, row = masked[0]
        token = int(np.flatnonzero((np.asarray(row.mask) == 0) & (_credit(row) != 0))[0])
        seen = f"{len(masked)} of {len(rows)} rows have credit on tokens with mask 0; row {place} on token {token}"
        change = "Give credit to the policy's tokens only: those of tools and of padding are not its doing"
        keys = tuple(dict.fromkeys(str(row.key) for _, row in masked))
        findings.append(AuditFinding("fail", "masked-reward", seen, change, keys[:5]))
    empty = [place for place, row in enumerate(rows) if not any(row.mask) and not _is_zero(row)]
    if empty:
        seen = f"{len(empty)} of {len(rows)} rows have credit and no token of the policy; the first is row {empty[0]}"
        findings.append(AuditFinding("warn", "nothing-trained", seen, "Leave empty texts out, or give them credit 0"))
    return findings


def _credit(row: AuditRow) -> npt.NDArray[np.float64]:
    # One number counts for the policy's tokens only, so it cannot stand on masked ones.
    if isinstance(row.credit, (int, float)):
        return np.where(np.asarray(row.mask) > 0, float(row.credit), 0.0)
    return np.asarray(row.credit, dtype=np.float64)


def _on_masked(row: AuditRow) -> bool:
    return bool(((np.asarray(row.mask) == 0) & (_credit(row) != 0)).any())


def _is_zero(row: AuditRow) -> bool:
    return row.credit == 0 if isinstance(row.credit, (int, float)) else not any(row.credit)


def look_at_filters(
    groups: Mapping[str, Sequence[Episode]], totals: Sequence[float], filters: Filters
) -> list[AuditFinding]:
    """Filters that leave out nothing, or everything."""
    episodes = [episode for group in groups.values() for episode in group]
    keys = [GroupKey(name) for name, group in groups.items() for _ in group]
    filtered = filters.apply(
        totals,
        Groups.of(keys),
        exact=[all(each.exact for each in episode.policy_rounds) for episode in episodes],
        answered=[episode.answered for episode in episodes],
        truncated=[episode.truncated for episode in episodes],
    )
    kept = int(filtered.keep.sum())
    if not kept:
        seen = f"the filters leave out all {len(episodes)} episodes: {filtered.counts()}"
        return [AuditFinding("fail", "filter-all", seen, "Loosen the filter that takes most, or mend what it finds")]
    if filters.any and kept == len(episodes):
        seen = f"the filters are on and leave out none of {len(episodes)} episodes"
        return [AuditFinding("note", "filter-idle", seen, "Check the thresholds if you expected otherwise")]
    return []
