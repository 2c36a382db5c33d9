"""A finished rollout: what the policy wrote, the run, and its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from concertino import Run, Trace, TraceStore
from concertino.traces.blobs import BLOB_LIMIT
from concertino.traces.journal import Journal
from concertino.traces.trace import header
from concertino_bench import Grade, Item, Key

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
        run: the run, with all its events; of one that happened in another process without them: they are in its trace.
        grade: of its answer.
        episode: what rewards read.
        candidates: with tree sampling, all texts that were tried.
        item: of a run that happened in another process, what an evaluation counts of it.
    """

    id: str
    assignment: Assignment
    sample: int
    sequences: list[TokenSequence]
    run: Run
    grade: Grade
    episode: Episode
    candidates: list[TurnCandidate] = field(default_factory=list)
    item: Item | None = None

    def write_trace(self, path: Path) -> Path:
        """Write the record of the run to a file.

        Raises:
            JournalError: the file exists already, or cannot be written.
        """
        if self.item is None or self.run.path is None:
            return self.run.write_trace(path)
        known = Trace.load(self.run.path)
        # Written again, not copied: a sealed trace is bound to its header, and large values lie in files beside it.
        with Journal.create(path, header(known.run_id)) as journal:
            for record in known.records:
                journal.append({name: value for name, value in record.items() if name != "n"}, limit=BLOB_LIMIT)
        return path

    def drop_trace(self) -> None:
        """Remove the trace of a run that happened in another process; it is not continued any more."""
        if self.item is not None and self.run.path is not None:
            TraceStore(self.run.path.parent).delete(self.run.id)
            self.run.path = None

    def item_of(self, key: Key, trace: str = "") -> Item:
        """What an evaluation counts of it.

        Args:
            key: system, task and sample.
            trace: where its trace is.
        """
        if self.item is not None:
            return replace(self.item, key=key, trace=trace)
        asked = self.assignment
        return Item.of_run(key, asked.task, self.grade, self.run, asked.pool, trace=trace, owners=asked.owners)

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
