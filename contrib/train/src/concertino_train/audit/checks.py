"""An audit of a reward on finished episodes: what is examined, in which order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from concertino import UsageError

from concertino_train.episodes import Episode
from concertino_train.groups.filters import Filters
from concertino_train.groups.keys import TOLERANCE, GroupKey, Groups
from concertino_train.groups.statistics import group_statistics
from concertino_train.rewards.reward import Reward, Scored
from concertino_train.rewards.term import UnpricedError

from .batch import AuditRow, look_at_filters, look_at_groups, look_at_pools, look_at_rewards, look_at_rows
from .pairs import higher_cost_rewarded, wrong_above_right
from .probes import probe_right, probe_spending, probe_success_first
from .report import HOMOGENEITY, AuditFinding, AuditReport


def audit(
    episodes: Mapping[str, Sequence[Episode]],
    reward: Reward,
    *,
    rows: Sequence[AuditRow] = (),
    filters: Filters | None = None,
) -> AuditReport:
    """Look for what is wrong with a reward and a batch.

    Args:
        episodes: by group. A hundred groups are plenty.
        reward: how they are scored.
        rows: rows of the batch with their masks, if there are any yet.
        filters: what the training is going to leave out.

    Returns:
        A report; nothing is raised for what is found. `report.refuse()` does that.
    """
    groups = {name: list(group) for name, group in episodes.items() if group}
    findings = look_at_rows(rows)
    if not groups:
        findings.append(AuditFinding("fail", "empty", "there are no episodes", "Collect some rollouts first"))
        return AuditReport.of(reward.name, findings, {"groups": 0, "episodes": 0})
    findings += look_at_groups(groups) + look_at_pools(groups)
    figures: dict[str, Any] = {"groups": len(groups), "episodes": sum(map(len, groups.values()))}
    # Rewards refuse groups that are mixed, and everything else rests on rewards.
    if any(finding.code == "mixed-group" for finding in findings):
        return AuditReport.of(reward.name, findings, figures)
    try:
        scores = {name: reward.score(group) for name, group in groups.items()}
        findings += probe_spending(groups, reward, TOLERANCE) + probe_right(groups, reward, TOLERANCE)
        findings += probe_success_first(groups, reward)
    except UsageError as error:
        change = "Prices are missing, see above" if isinstance(error, UnpricedError) else "Give what is missing"
        findings.append(AuditFinding("fail", "unscored", str(error).rstrip("."), change))
        return AuditReport.of(reward.name, findings, figures)
    findings += _scored(groups, scores, reward, filters, figures)
    return AuditReport.of(reward.name, findings, figures)


def _scored(
    groups: Mapping[str, Sequence[Episode]],
    scores: Mapping[str, Sequence[Scored]],
    reward: Reward,
    filters: Filters | None,
    figures: dict[str, Any],
) -> list[AuditFinding]:
    """Findings from the scores of the batch; fills in the figures."""
    totals = [scored.total for group in scores.values() for scored in group]
    keys = [GroupKey(name) for name, group in groups.items() for _ in group]
    of_batch = group_statistics(totals, Groups.of(keys), threshold=HOMOGENEITY)
    episodes = [episode for group in groups.values() for episode in group]
    figures |= {
        "right": sum(episode.right for episode in episodes) / len(episodes),
        "reward_mean": sum(totals) / len(totals),
        "reward_least": of_batch.least,
        "reward_most": of_batch.most,
        "zero_variance_share": of_batch.zero_variance_share,
        "homogeneous_share": of_batch.homogeneous_share,
        "distinct_rewards": of_batch.distinct_mean,
    }
    findings = higher_cost_rewarded(groups, scores, reward) + wrong_above_right(groups, scores)
    findings += look_at_rewards(groups, scores, of_batch)
    if not reward.charges:
        seen = f"reward {reward.name} takes nothing away for what is spent"
        findings.append(
            AuditFinding("note", "nothing-charged", seen, "Add a term such as shared/spending if cost matters")
        )
    if filters is not None:
        findings += look_at_filters(groups, totals, filters)
    return findings


def read_episodes(path: str | Path) -> dict[str, list[Episode]]:
    """Episodes of a JSON Lines file, by group, in the order of the file.

    Raises:
        UsageError: the file cannot be read, or a line is no episode; names the line.
    """
    groups: dict[str, list[Episode]] = {}
    try:
        with Path(path).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    episode = _episode(line, f"{path}:{number}")
                    groups.setdefault(episode.group, []).append(episode)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return groups


def _episode(line: str, where: str) -> Episode:
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            raise UsageError(f"a {type(data).__name__}, and no object")
        return Episode.from_json(data)
    except (ValueError, UsageError) as error:
        raise UsageError(f"{where}: {error}") from error
