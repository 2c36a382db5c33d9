"""The reference: the policy as it was when training began, which the KL term measures the distance to.

What is trained is kept as a copy, and put in place while log-probabilities of the reference are computed; for adapters
that is a copy of the adapters alone, for sharded weights of this process's parts. The invariant: outside `active` the
model has its own weights, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class ReferencePolicy:
    """Weights at one moment."""

    def __init__(self, model: nn.Module) -> None:
        """Copy all weights of a model that are trained."""
        self._kept = {name: value.clone() for name, value in _trained(model).items()}

    @contextmanager
    def active(self, model: nn.Module) -> Iterator[None]:
        """The model with these weights, without gradients."""
        exchanged: list[tuple[Tensor, Tensor]] = []
        try:
            with torch.no_grad():
                for name, value in _trained(model).items():
                    _exchange(value, self._kept[name])
                    exchanged.append((value, self._kept[name]))
                yield
        finally:
            with torch.no_grad():
                for pair in exchanged:
                    _exchange(*pair)


def _exchange(one: Tensor, other: Tensor) -> None:
    """Each gets the numbers of the other. The optimiser holds the parameters, and FSDP their storage, so both stay."""
    held = one.clone()
    one.copy_(other)
    other.copy_(held)


def _trained(model: nn.Module) -> dict[str, Tensor]:
    """What is trained; of sharded weights this process's parts."""
    values = {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}
    return {name: value.to_local() if hasattr(value, "to_local") else value for name, value in values.items()}
