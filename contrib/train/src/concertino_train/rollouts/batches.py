"""A batch: rollouts as rows with advantages, ready for a trainer; arithmetic on arrays, no torch.

    rollouts, rewards -> groups -> advantages -> filters -> rows with credit

With the grouping `trajectory`, whole rollouts of a question are compared, and every row of a rollout has its
advantage. With `agent_turn`, the candidates of one role's turn are compared (AT-GRPO).

The invariants: rows of a group have one identical prompt; advantages are worked out before filters, so what is kept is
as it was; credit stands on tokens that the policy sampled, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from concertino import UsageError

from concertino_train.groups.advantages import AdvantageSettings, compute_advantages
from concertino_train.groups.filters import Filters
from concertino_train.groups.keys import Bools, Floats, GroupKey, Groups, prompt_digest
from concertino_train.groups.statistics import group_statistics
from concertino_train.rewards.reward import Scored

from .rollout import Rollout
from .sequences import Grouping, TrainingRow, row_of_turn, rows_of_sequences

_EMPTY: Any = np.zeros(0)
_ADVANTAGE, _FILTERS = AdvantageSettings(), Filters()
_HOMOGENEOUS = 0.1
"""Std below which a group counts as homogeneous where no filter says another: ToolOrchestra's 0.1 (section 3.2)."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a training step.

    Attributes:
        rows: n of them.
        credit: shape (n,): the advantage of each row; 0 where it is not trained.
        keep: shape (n,): rows that are trained and count in denominators.
        rewards: shape (n,): the reward of each row, before any normalisation.
        reasons: for each row why it is not trained, empty if it is: a filter's word, `no-difference`, or `stale`.
        figures: numbers for logs: groups, shares, rewards and their components.
    """

    rows: list[TrainingRow]
    credit: Floats = field(default_factory=lambda: _EMPTY)
    keep: Bools = field(default_factory=lambda: _EMPTY.astype(bool))
    rewards: Floats = field(default_factory=lambda: _EMPTY)
    reasons: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rollouts: Sequence[Rollout],
        scored: Sequence[Scored],
        *,
        grouping: Grouping = "trajectory",
        advantage: AdvantageSettings = _ADVANTAGE,
        filters: Filters = _FILTERS,
        size: int | None = None,
    ) -> Batch:
        """The batch of rollouts.

        Args:
            rollouts: all of a step.
            scored: their rewards; those of candidates stand in themselves.
            grouping: what is compared.
            advantage: how rewards become advantages.
            filters: what is left out.
            size: how many members every group has to have.

        Raises:
            MixedGroupError: members of a group have different prompts.
            UsageError: a group has another size, or `agent_turn` without candidates.
        """
        if len(rollouts) != len(scored):
            raise UsageError(f"{len(rollouts)} rollouts and {len(scored)} rewards; expected one for each")
        if grouping == "agent_turn":
            members = _turns(rollouts)
        else:
            members = _wholes(rollouts, scored)
        rewards = np.array([member.reward.total for member in members], dtype=np.float64)
        groups = Groups.of([m.key for m in members], [prompt_digest(m.prompt) for m in members], size=size)
        found = compute_advantages(rewards, groups, advantage)
        filtered = filters.apply(
            rewards,
            groups,
            exact=[m.exact for m in members],
            answered=[m.answered for m in members],
            truncated=[m.truncated for m in members],
        )
        trained = found.counted & filtered.keep
        reasons = [why or ("" if trained[n] else "no-difference") for n, why in enumerate(filtered.reasons)]
        # Filtered groups count, so that the shares in the logs are of everything that was sampled.
        figures = _figures(rewards, groups, members, trained, filters.homogeneity)
        spread = [(row, n) for n, member in enumerate(members) for row in member.rows]
        index = np.array([n for _, n in spread], dtype=np.int64)
        return cls(
            [row for row, _ in spread],
            # A filtered row has an advantage as well, since its group was compared whole.
            np.where(trained, found.values, 0.0)[index],
            trained[index],
            rewards[index],
            tuple(reasons[n] for n in index),
            figures,
        )

    def __len__(self) -> int:
        return len(self.rows)

    def no_older_than(self, staleness: int, version: Callable[[str], int]) -> Batch:
        """The batch without rows that hold a token of too old weights; its figures tell how old the tokens are.

        Args:
            staleness: updates that a token may be old.
            version: of the weights that are trained next, by role.
        """
        ages = [
            # Of a training that crashed, tokens may be of weights that come again only later.
            [max(0, version(row.role) - each) for each, on in zip(row.versions, row.mask, strict=True) if on]
            for row in self.rows
        ]
        stale = np.array([max(each, default=0) > staleness for each in ages], dtype=bool)
        keep = self.keep & ~stale
        trained = [age for each, on in zip(ages, keep, strict=True) if on for age in each]
        reasons = tuple("stale" if old else why for old, why in zip(stale, self.reasons, strict=True))
        figures = {
            "ahead/stale": float((self.keep & stale).sum()),
            "ahead/staleness_mean": float(np.mean(trained)) if trained else 0.0,
            "ahead/staleness_max": float(max(trained, default=0)),
        }
        credit = np.where(keep, self.credit, 0.0)
        return replace(self, credit=credit, keep=keep, reasons=reasons, figures={**self.figures, **figures})


@dataclass(frozen=True)
class _Member:
    """What is compared: a rollout or a candidate."""

    key: GroupKey
    prompt: tuple[int, ...]
    reward: Scored
    rows: list[TrainingRow]
    exact: bool
    answered: bool
    truncated: bool


def _wholes(rollouts: Sequence[Rollout], scored: Sequence[Scored]) -> list[_Member]:
    members = []
    for number, (rollout, reward) in enumerate(zip(rollouts, scored, strict=True)):
        rows = rows_of_sequences(rollout.sequences, rollout.group, number)
        episode = rollout.episode
        exact = all(round_.exact for round_ in episode.policy_rounds)
        members.append(
            _Member(
                GroupKey(rollout.group),
                _first_prompt(rollout),
                reward,
                rows,
                exact,
                episode.answered,
                episode.truncated,
            )
        )
    return members


def _first_prompt(rollout: Rollout) -> tuple[int, ...]:
    """What the policy read before it wrote anything."""
    if not rollout.sequences:
        return ()
    sequence = rollout.sequences[0]
    return tuple(sequence.ids[: sequence.turns[0].start] if sequence.turns else sequence.ids)


def _turns(rollouts: Sequence[Rollout]) -> list[_Member]:
    members: list[_Member] = []
    if rollouts and not any(rollout.candidates for rollout in rollouts):
        raise UsageError(
            f"rollout {rollouts[0].id} has no candidates, nor has any other: groups of agent and turn need tree "
            "sampling (TreeSampler), and first prompts that leave room in rollout.context_tokens"
        )
    for number, rollout in enumerate(rollouts):
        for each in rollout.candidates:
            row = row_of_turn(each.sequence, each.turn, each.key, number)
            scores = each.episode.turns[-1].scores
            exact = scores.get("format", 1.0) > 0
            # A candidate is one turn, which need not hold an answer; the filter `invalid` is for whole rollouts.
            members.append(_Member(each.key, row.prompt, each.reward, [row], exact, True, row.truncated))
    return members


def _figures(
    rewards: Floats, groups: Groups, members: Sequence[_Member], trained: Bools, bound: float | None
) -> dict[str, float]:
    found = group_statistics(rewards, groups, threshold=_HOMOGENEOUS if bound is None else bound)
    names = dict.fromkeys(name for member in members for name in member.reward.components)
    parts = {
        f"reward/{name}": float(np.mean([member.reward.components.get(name, 0.0) for member in members]))
        for name in names
    }
    return {
        "reward": float(rewards.mean()) if len(rewards) else 0.0,
        "reward_std": float(rewards.std()) if len(rewards) else 0.0,
        **parts,
        "groups": float(len(groups)),
        "groups/zero_variance": float(found.zero_variance_share),
        "groups/homogeneous": float(found.homogeneous_share),
        "rows": float(sum(len(member.rows) for member in members)),
        "rows/trained": float(sum(len(member.rows) for member, on in zip(members, trained, strict=True) if on)),
        "rows/truncated": float(sum(len(member.rows) for member in members if member.truncated)),
    }
