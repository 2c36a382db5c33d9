"""The settings of reinforcement learning: what is optimised, how far a step goes, and how much it sees.

The invariant: how many optimiser steps a step makes depends on `steps_per_generation` and `iterations` alone, never on
how many rows or turns there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from concertino_train.config.learning import ComputeSection, PolicyUpdate, RlSteps
from concertino_train.settings import Above

if TYPE_CHECKING:
    from .losses import Correction


class Algorithm(PolicyUpdate, RlSteps, ComputeSection):
    """How a policy is trained: the settings of a file that a trainer reads.

    Attributes:
        temperature: that texts are sampled at; probabilities are taken at it.
        group_size: rollouts of each question; a group of one has nothing to be compared with.
    """

    temperature: Above = 1.0
    group_size: Annotated[int, Field(ge=2)] = 8

    @property
    def corrects(self) -> Correction:
        """The importance correction; none where nobody has said that the sampler differs."""
        return "none" if self.correction == "auto" else self.correction

    @property
    def updates(self) -> int:
        """Optimiser steps that each step makes."""
        return self.steps_per_generation * self.iterations

    @property
    def optimizer_steps(self) -> int:
        """Optimiser steps of the whole training."""
        return self.steps * self.updates
