"""New weights for a loaded model, in place.

Everything is checked before the first tensor is written, so a wrong set of weights changes nothing. Keys and values
that the old weights made are dropped, all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from concertino.schema import suggestion

from .errors import caller_error
from .loading import load_network, with_adapter

if TYPE_CHECKING:
    from .session import Session

Weights = Mapping[str, torch.Tensor] | str | Path
"""A state dict of the causal LM, the folder of a model of the same shape, or the folder of a LoRA adapter."""


def replace_weights(session: Session, weights: Weights, version: str) -> str:
    """Put new weights into the model of a session in which nothing generates.

    Raises:
        ProviderError: the weights do not fit; nothing has changed.
    """
    # The worker runs in inference mode, and weights that are made there cannot be changed outside of it.
    with torch.inference_mode(False), torch.no_grad():
        network = session.loaded.network
        if isinstance(weights, Mapping):
            plain = check(_plain(network), weights, "the state dict")
            network = _copy(_without_adapter(network), plain)
        else:
            folder = Path(weights).expanduser()
            if not folder.is_dir():
                raise caller_error(f"load_weights({str(weights)!r}): folder not found")
            if (folder / "adapter_config.json").is_file():
                network = with_adapter(_without_adapter(network), str(folder))
            else:
                fresh = load_network(folder, session.settings).state_dict()
                network = _copy(_without_adapter(network), check(_plain(network), fresh, str(folder)))
    session.use_network(network)
    session.stats.weights = version
    return version


def check(own: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor], what: str) -> dict[str, torch.Tensor]:
    """The given tensors, if they are this model's, each with its shape; tied weights may be given once.

    Raises:
        ProviderError: names a tensor that is unknown, missing or of another shape.
    """
    for name, tensor in given.items():
        if name not in own:
            hint = suggestion(name, own, "give the state dict of the causal LM itself")
            raise caller_error(f"{what} has the tensor {name!r}, which the model lacks; {hint}")
        if tensor.shape != own[name].shape:
            raise caller_error(
                f"{what} has {name!r} in the shape {tuple(tensor.shape)}; expected {tuple(own[name].shape)}"
            )
    # Tied weights share memory, so one of their names covers the others.
    covered = {own[name].data_ptr() for name in given}
    missing = [name for name, tensor in own.items() if name not in given and tensor.data_ptr() not in covered]
    if missing:
        raise caller_error(f"{what} lacks {len(missing)} of {len(own)} tensors, {missing[0]!r} among them")
    return dict(given)


def _plain(network: Any) -> dict[str, torch.Tensor]:
    """The tensors of the causal LM by its own names, whatever adapter is on it."""
    tensors: dict[str, torch.Tensor] = network.state_dict()
    if not hasattr(network, "get_base_model"):
        return tensors
    # peft wraps each layer, and names what was there before `base_layer`.
    named = {name.removeprefix("base_model.model.").replace(".base_layer.", "."): t for name, t in tensors.items()}
    return {name: tensor for name, tensor in named.items() if ".lora_" not in name}


def _without_adapter(network: Any) -> Any:
    """The causal LM without the adapter on it."""
    return network.unload() if hasattr(network, "get_base_model") else network


def _copy(network: Any, given: Mapping[str, torch.Tensor]) -> Any:
    own = network.state_dict()
    for name, tensor in given.items():
        own[name].copy_(tensor)
    return network
