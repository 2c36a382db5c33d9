"""A finished rollout: what the policy wrote, the run, and its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from concertino import Run
from concertino_bench import Grade

from concertino_train.episodes import Episode
from concertino_train.groups.keys import GroupKey
from concertino_train.rewards.reward import Reward, Scored

from .assignment import Assignment
from .sequences import TokenSequence, TokenTurn


@dataclass(frozen=True)
class TurnCandidate:
    """One of K texts that were tried at one point of a rollout (tree sampling).

    Attributes:
        key: question, role and number of the turn: its group.
        sequence: what was read before it, and the text itself at its end.
        episode: what rewards read of it.
        reward: its reward.
        chosen: the rollout continued with it.
    """

    key: GroupKey
    sequence: TokenSequence
    episode: Episode
    reward: Scored
    chosen: bool = False

    @property
    def turn(self) -> TokenTurn:
        """The text."""
        return self.sequence.turns[-1]


@dataclass
class Rollout:
    """One finished rollout.

    Attributes:
        id: its name in the training, such as `2-0-1`; the run has a longer one.
        assignment: what was rolled out.
        sample: which rollout of its group, from 0.
        sequences: what the policy read and wrote.
        run: the run, with all its events.
        grade: of its answer.
        episode: what rewards read.
        candidates: with tree sampling, all texts that were tried.
    """

    id: str
    assignment: Assignment
    sample: int
    sequences: list[TokenSequence]
    run: Run
    grade: Grade
    episode: Episode
    candidates: list[TurnCandidate] = field(default_factory=list)

    @property
    def group(self) -> str:
        """What it is compared with."""
        return self.episode.group

    @property
    def sampled(self) -> int:
        """Tokens that the policy sampled, those of candidates that were not chosen included."""
        if self.candidates:
            return sum(each.turn.end - each.turn.start for each in self.candidates)
        return sum(sequence.sampled for sequence in self.sequences)


def score_rollouts(rollouts: Sequence[Rollout], reward: Reward) -> list[Scored]:
    """Rewards of rollouts, each group scored separately.

    Raises:
        UsageError: as `Reward.score`.
    """
    groups: dict[str, list[int]] = {}
    for place, rollout in enumerate(rollouts):
        groups.setdefault(rollout.group, []).append(place)
    found: dict[int, Scored] = {}
    for places in groups.values():
        scored = reward.score([rollouts[place].episode for place in places])
        found.update(zip(places, scored, strict=True))
    return [found[place] for place in range(len(rollouts))]
