"""What a policy wrote in one rollout, as token ids: sequences, turns, and the rows of a training batch made of them.

A *token sequence* only grows: it is a conversation as the policy read and wrote it, turn after turn. A strategy that
rewrites what was said (cut history, new prompts) begins a new sequence; nothing is joined that was not read as one. A
*row* is one entry of a training batch.

The invariants: a token is trained exactly if the policy sampled it, in the order it was sampled, once per row; the
log-probability of each is stored with it; everything else in a row has mask 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from concertino import UsageError
from concertino_local.codec import Ids

from concertino_train.groups.keys import GroupKey, prompt_digest

Grouping = Literal["trajectory", "agent_turn"]
"""What is compared: whole rollouts of a question, or single turns of one role behind one prompt (AT-GRPO)."""


@dataclass(frozen=True)
class TokenTurn:
    """One text of the policy.

    Attributes:
        start, end: its place in the sequence: `sequence.ids[start:end]` was sampled, the rest was read.
        logprobs: of these tokens, at the temperature of sampling.
        finish: `stop` or `length`.
        number: which turn of the rollout, counted from 1 over all roles.
        version: of the weights that wrote it.
    """

    start: int
    end: int
    logprobs: tuple[float, ...]
    finish: str = "stop"
    number: int = 1
    version: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end or len(self.logprobs) != self.end - self.start:
            raise UsageError(
                f"TokenTurn({self.start}, {self.end}) has {len(self.logprobs)} log-probabilities; expected one each"
            )


@dataclass
class TokenSequence:
    """The tokens that one role read and wrote.

    Attributes:
        role: who wrote its turns.
        ids: all tokens.
        turns: in order, not overlapping; what stands before the first is the prompt.
    """

    role: str
    ids: list[int] = field(default_factory=list)
    turns: list[TokenTurn] = field(default_factory=list)

    def read(self, ids: Sequence[int]) -> None:
        """Append tokens that the policy reads."""
        self.ids.extend(ids)

    def wrote(self, ids: Sequence[int], logprobs: Sequence[float], finish: str, number: int, version: int) -> None:
        """Append tokens that the policy sampled."""
        start = len(self.ids)
        self.ids.extend(ids)
        self.turns.append(TokenTurn(start, len(self.ids), tuple(logprobs), finish, number, version))

    def fork(self) -> TokenSequence:
        """An independent copy."""
        return TokenSequence(self.role, list(self.ids), list(self.turns))

    @property
    def sampled(self) -> int:
        """How many tokens were sampled."""
        return sum(turn.end - turn.start for turn in self.turns)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        turns = [
            {
                "start": t.start,
                "end": t.end,
                "logprobs": list(t.logprobs),
                "finish": t.finish,
                "number": t.number,
                "version": t.version,
            }
            for t in self.turns
        ]
        return {"role": self.role, "ids": list(self.ids), "turns": turns}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TokenSequence:
        """The inverse of `to_json`."""
        turns = [TokenTurn(**{**turn, "logprobs": tuple(turn["logprobs"])}) for turn in data["turns"]]
        return cls(data["role"], list(data["ids"]), turns)


@dataclass(frozen=True)
class TrainingRow:
    """One row of a training batch.

    Attributes:
        key: of its group.
        role: who wrote it.
        prompt: token ids before the first trained one.
        completion: the ids behind them; shape (T,).
        mask: 1 for tokens that the policy sampled, else 0; shape (T,).
        logprobs: of the sampled tokens, 0 elsewhere; shape (T,).
        rollout: index of the rollout that it is made of.
        turns: numbers of the turns in it.
        truncated: a text of it was cut off.
        versions: of the weights that sampled each token, 0 elsewhere; shape (T,).
    """

    key: GroupKey
    role: str
    prompt: Ids
    completion: Ids
    mask: tuple[int, ...]
    logprobs: tuple[float, ...]
    rollout: int = 0
    turns: tuple[int, ...] = ()
    truncated: bool = False
    versions: tuple[int, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of the prompt's ids: equal exactly for equal prompts."""
        return prompt_digest(self.prompt)

    @property
    def trained(self) -> int:
        """How many tokens are trained."""
        return sum(self.mask)


def rows_of_sequences(sequences: Sequence[TokenSequence], question: str, rollout: int) -> list[TrainingRow]:
    """A rollout as rows of whole sequences: each prompt is what stands before the sequence's first turn.

    A rollout with one sequence, the usual case, is one row with the question as its key. Further sequences have prompts
    of their own, which no other rollout shares. They are rows of the same group, because whole rollouts are compared.

    Args:
        sequences: of one rollout.
        question: key of the group.
        rollout: its index.
    """
    # A sequence without a sampled token has nothing to train.
    return [_row(sequence, GroupKey(question), rollout, sequence.turns) for sequence in sequences if sequence.sampled]


def row_of_turn(sequence: TokenSequence, turn: TokenTurn, key: GroupKey, rollout: int) -> TrainingRow:
    """One turn as a row: everything before it is its prompt."""
    return _row(sequence, key, rollout, [turn])


def _row(sequence: TokenSequence, key: GroupKey, rollout: int, turns: Sequence[TokenTurn]) -> TrainingRow:
    # What was read behind the last turn leads to no token that is trained.
    first, last = turns[0].start, turns[-1].end
    mask, versions, logprobs = [0] * (last - first), [0] * (last - first), [0.0] * (last - first)
    for turn in turns:
        for place in range(turn.start, turn.end):
            mask[place - first] = 1
            versions[place - first] = turn.version
            logprobs[place - first] = turn.logprobs[place - turn.start]
    return TrainingRow(
        key,
        sequence.role,
        tuple(sequence.ids[:first]),
        tuple(sequence.ids[first:last]),
        tuple(mask),
        tuple(logprobs),
        rollout,
        tuple(turn.number for turn in turns),
        any(turn.finish == "length" for turn in turns),
        tuple(versions),
    )
