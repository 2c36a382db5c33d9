"""What a policy wrote in one rollout, as token ids: lines, turns, and the rows of a training batch made of them.

A *line* is one sequence of tokens that only grows: a conversation as the policy read and wrote it, turn behind turn. A
strategy that rewrites what was said (cut history, prompts made anew) begins a new line; nothing is joined that was not
read as one. A *row* is what one line of a training batch holds.

The invariants: a token is trained exactly if the policy sampled it, in the order it was sampled, once per row; the
log-probability of each stands beside it; everything else in a row has mask 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from concertino import UsageError
from concertino_local.codec import Ids

from .groups import GroupKey, prompt_digest

Grouping = Literal["trajectory", "agent_turn"]
"""What is compared: whole rollouts of a question, or single turns of one role behind one prompt (AT-GRPO)."""


@dataclass(frozen=True)
class Turn:
    """One text of the policy.

    Attributes:
        start, end: its place in the line: `line.ids[start:end]` was sampled, the rest was read.
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
                f"Turn({self.start}, {self.end}) with {len(self.logprobs)} log-probabilities; expected one per token"
            )


@dataclass
class Line:
    """A sequence that one role read and wrote.

    Attributes:
        role: who wrote its turns.
        ids: all tokens.
        turns: in order, not overlapping; what stands before the first is the prompt.
    """

    role: str
    ids: list[int] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    def read(self, ids: Sequence[int]) -> None:
        """Go on with tokens that the policy reads."""
        self.ids.extend(ids)

    def wrote(self, ids: Sequence[int], logprobs: Sequence[float], finish: str, number: int, version: int) -> None:
        """Go on with tokens that the policy sampled."""
        start = len(self.ids)
        self.ids.extend(ids)
        self.turns.append(Turn(start, len(self.ids), tuple(logprobs), finish, number, version))

    def fork(self) -> Line:
        """An independent copy."""
        return Line(self.role, list(self.ids), list(self.turns))

    @property
    def sampled(self) -> int:
        """How many tokens were sampled."""
        return sum(turn.end - turn.start for turn in self.turns)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        turns = [
            {"start": t.start, "end": t.end, "logprobs": list(t.logprobs), "finish": t.finish, "number": t.number,
             "version": t.version} for t in self.turns
        ]  # fmt: skip
        return {"role": self.role, "ids": list(self.ids), "turns": turns}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Line:
        """The inverse of `to_json`."""
        turns = [Turn(**{**turn, "logprobs": tuple(turn["logprobs"])}) for turn in data["turns"]]
        return cls(data["role"], list(data["ids"]), turns)


@dataclass(frozen=True)
class Row:
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

    @property
    def digest(self) -> str:
        """Of its prompt: equal exactly for equal prompts."""
        return prompt_digest(self.prompt)

    @property
    def trained(self) -> int:
        """How many tokens are trained."""
        return sum(self.mask)


def rows_of_lines(lines: Sequence[Line], question: str, rollout: int) -> list[Row]:
    """A rollout as rows of whole lines: each prompt is what stands before the line's first turn.

    A rollout with one line, the usual case, is one row with the question as its key. Further lines have prompts of
    their own, that no other rollout shares; they are rows of the same group, for it is the whole rollout that is
    compared.

    Args:
        lines: of one rollout.
        question: key of the group.
        rollout: its index.
    """
    return [_row(line, GroupKey(question), rollout, line.turns) for line in lines if line.sampled]


def row_of_turn(line: Line, turn: Turn, key: GroupKey, rollout: int) -> Row:
    """One turn as a row: everything before it is its prompt."""
    return _row(line, key, rollout, [turn])


def _row(line: Line, key: GroupKey, rollout: int, turns: Sequence[Turn]) -> Row:
    first, last = turns[0].start, turns[-1].end
    mask, logprobs = [0] * (last - first), [0.0] * (last - first)
    for turn in turns:
        for place in range(turn.start, turn.end):
            mask[place - first] = 1
            logprobs[place - first] = turn.logprobs[place - turn.start]
    return Row(
        key, line.role, tuple(line.ids[:first]), tuple(line.ids[first:last]), tuple(mask), tuple(logprobs), rollout,
        tuple(turn.number for turn in turns), any(turn.finish == "length" for turn in turns),
    )  # fmt: skip
