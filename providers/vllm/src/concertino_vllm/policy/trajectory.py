"""A conversation as a policy saw and wrote it: token ids, one turn after the other, and never tokenised again.

Invariant: the prompt of every turn begins with all ids of the turn before. A turn whose prompt does not is refused with
the place and the reason, since log-probabilities of other ids than the sampled ones would be trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from concertino import ConcertinoError


class TokenDrift(ConcertinoError):
    """A prompt does not continue what was sampled. The trajectory is of no use for training."""


class SampledTurn(Protocol):
    """What a turn has to tell: a `PolicyGeneration`, for one."""

    @property
    def prompt_ids(self) -> Sequence[int]:
        """What the policy was shown."""

    @property
    def token_ids(self) -> Sequence[int]:
        """What it sampled."""

    @property
    def logprobs(self) -> Sequence[float]:
        """The log-probability of each sampled token."""

    @property
    def version(self) -> int:
        """Which policy it was."""


@dataclass
class TokenTrajectory:
    """Turns, one after the other.

    Attributes:
        ids: all ids.
        mask: for each id, whether the policy sampled it.
        logprobs: for each id, its log-probability when it was sampled; 0 for the others.
        versions: the version of the policy in each turn.
    """

    ids: list[int] = field(default_factory=list)
    mask: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)

    def add(self, turn: SampledTurn) -> None:
        """Put a turn to the end.

        Raises:
            TokenDrift: its prompt does not begin with what is here, or ids and log-probabilities do not match.
        """
        prompt, sampled = list(turn.prompt_ids), list(turn.token_ids)
        number = len(self.versions) + 1
        if len(sampled) != len(turn.logprobs):
            raise TokenDrift(f"turn {number}: {len(sampled)} ids and {len(turn.logprobs)} log-probabilities")
        known = len(self.ids)
        if prompt[:known] != self.ids:
            pairs = enumerate(zip(self.ids, prompt, strict=False))
            place = next((at for at, (mine, other) in pairs if mine != other), min(known, len(prompt)))
            whose = "sampled" if place < known and self.mask[place] else "shown"
            raise TokenDrift(
                f"turn {number}: its prompt differs at id {place} of {known}: {self.ids[place : place + 4]} were "
                f"{whose} before, and it has {prompt[place : place + 4]}; show it the ids themselves, not their text"
            )
        fresh = len(prompt) - known
        self.ids += prompt[known:] + sampled
        self.mask += [False] * fresh + [True] * len(sampled)
        self.logprobs += [0.0] * fresh + list(turn.logprobs)
        self.versions.append(turn.version)
