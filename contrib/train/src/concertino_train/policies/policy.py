"""A policy: what is trained, as rollouts see it. Token ids in, sampled token ids and their log-probabilities out.

The invariants: `generate` answers every prompt, in order; what it says was sampled is what was sampled, token by token;
and what it samples for a prompt depends on the prompt, its seed and the weights, not on its neighbours in the batch
(but for the rounding of a batch's arithmetic).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from concertino import UsageError
from concertino_local.codec import Codec, Ids


@dataclass(frozen=True)
class Prompt:
    """What a policy is asked to continue.

    Attributes:
        ids: the whole context.
        most: tokens to sample at most, 1 or more.
        role: who speaks, for policies that differ by role.
        seed: of this sample.
    """

    ids: Ids
    most: int
    role: str = "orchestrator"
    seed: int = 0


@dataclass(frozen=True)
class Sample:
    """What was sampled.

    Attributes:
        ids: the sampled tokens, the end of the turn included where it was sampled.
        logprobs: natural logarithm of each token's probability *at the temperature it was sampled with*; as many as
            `ids`.
        finish: `stop` where a token of `Codec.end_ids` ended it, `length` where `most` did.
    """

    ids: Ids
    logprobs: tuple[float, ...]
    finish: Literal["stop", "length"]

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.logprobs):
            raise UsageError(f"a sample of {len(self.ids)} tokens with {len(self.logprobs)} log-probabilities")


class Policy(ABC):
    """What is trained.

    Attributes:
        codec: between messages and its token ids.
        temperature: with which it samples; 0 takes the most probable token.
        top_p: share of probability that is sampled from; 1 is all.
        version: goes up by 1 whenever the weights change; recorded with every rollout.
        apart: it samples with a copy of the weights that are trained, so it may sample during an update.
    """

    codec: Codec
    temperature: float = 1.0
    top_p: float = 1.0
    version: int = 0
    apart: bool = False

    @abstractmethod
    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        """Sample a continuation of each prompt. Called from one thread at a time, which may block."""

    def rest(self) -> None:  # noqa: B027
        """Nothing is sampled until the weights have changed: memory that only sampling needs may be given back."""

    def close(self) -> None:  # noqa: B027
        """Release what it holds."""
