"""The reference: the policy as it was when training began, which the KL term measures the distance to.

What is trained is kept as a copy, and put in place while log-probabilities of the reference are computed; for adapters
that is a copy of the adapters alone. The invariant: outside `active` the model has its own weights, bit by bit.
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
        self._kept = {name: value.detach().clone() for name, value in _trained(model)}

    @contextmanager
    def active(self, model: nn.Module) -> Iterator[None]:
        """The model with these weights, without gradients."""
        own: dict[str, Tensor] = {}
        # The optimiser holds these very parameters, so they stay, and only the tensors inside them are exchanged.
        parameters = {name: value for name, value in model.named_parameters() if name in self._kept}
        try:
            for name, value in parameters.items():
                # Exchanged and not copied over, so the model's own weights come back bit by bit.
                own[name], value.data = value.data, self._kept[name].to(value.device)
            with torch.no_grad():
                yield
        finally:
            for name, data in own.items():
                parameters[name].data = data


def _trained(model: nn.Module) -> list[tuple[str, Tensor]]:
    return [(name, value) for name, value in model.named_parameters() if value.requires_grad]
