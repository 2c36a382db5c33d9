"""Weights that are spread over processes (FSDP2), and the moments in which each process has all of them.

Every layer is a unit, and the rest of the model is one more. Between its uses, a process holds one part of each weight,
of its gradient and of its optimiser state; for computing, the parts of a unit are put together. The invariants: the
parts are float32 (or as frozen weights were loaded), whatever precision is computed in; every function here is called
by all processes together; and outside `whole` no process holds more than its parts.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from concertino import UsageError
from torch import Tensor, nn

from concertino_train.running.shards import SHARDS


def shard(model: nn.Module, device: torch.device, *, bfloat16: bool = False) -> None:
    """Spread a model over all processes, in place.

    Args:
        model: of transformers or PEFT; its parameters are other objects afterwards, so the optimiser is made later.
        device: of this process; layers are moved to it one by one.
        bfloat16: compute in it. The parts stay float32, and gradients are summed in float32.
    """
    fsdp = importlib.import_module("torch.distributed.fsdp")
    _form_group(device)
    for value in model.parameters():
        # Small updates would be lost in 16 bits.
        if value.requires_grad and value.dtype != torch.float32:
            value.data = value.data.float()
    mesh = importlib.import_module("torch.distributed.device_mesh").init_device_mesh(
        device.type, (torch.distributed.get_world_size(),)
    )
    kind = torch.bfloat16 if bfloat16 else None
    # Also of the root, which torch would keep whole after a pass without gradients, and then compute with old weights.
    options = {
        "mesh": mesh,
        "reshard_after_forward": True,
        "mp_policy": fsdp.MixedPrecisionPolicy(param_dtype=kind, reduce_dtype=torch.float32),
    }
    for layer in _layers(model):
        fsdp.fully_shard(layer, **options)
    fsdp.fully_shard(model, **options)


def is_sharded(model: nn.Module) -> bool:
    """Whether `shard` has spread it."""
    return isinstance(model, importlib.import_module("torch.distributed.fsdp").FSDPModule)


@contextmanager
def whole(model: nn.Module) -> Iterator[None]:
    """Every process has all weights, in the precision that is computed in, and may compute alone.

    Without gradients only. What is not sharded is whole as it is.
    """
    units: list[Any] = _units(model)
    if is_sharded(model):
        # Otherwise a layer that computes before the model has done so would take itself for the whole.
        root: Any = model
        root._get_fsdp_state()._lazy_init()
    for unit in units:
        unit.unshard()
        # Otherwise every pass would free the weights, and the next one would wait for other processes.
        unit.set_reshard_after_forward(False, recurse=False)
    try:
        yield
    finally:
        for unit in units:
            unit.set_reshard_after_forward(True, recurse=False)
            unit.reshard()


def gathered_weights(model: nn.Module, *, trained: bool = False) -> dict[str, Tensor]:
    """All weights on the CPU of the first process; nothing on the others.

    They are put together one after the other, so that no device has to hold more than the largest of them besides its
    own parts.

    Args:
        model: sharded.
        trained: only those that are trained: the adapters of a model that has them.
    """
    lead, found = torch.distributed.get_rank() == 0, dict[str, Tensor]()
    taken = {name for name, value in model.named_parameters(remove_duplicate=False) if value.requires_grad}
    for name, value in model.state_dict().items():
        if trained and name not in taken:
            continue
        full = value.full_tensor() if hasattr(value, "full_tensor") else value
        if lead:
            found[name] = full.detach().cpu()
    return found


def save_whole(model: Any, folder: Path | str, **more: Any) -> None:
    """Write a model as `save_pretrained` does, by the first process.

    Args:
        model: sharded.
        folder: for its weights.
        **more: for `save_pretrained`.
    """
    state = gathered_weights(model, trained=hasattr(model, "peft_config"))
    if torch.distributed.get_rank() == 0:
        model.save_pretrained(str(folder), state_dict=state, **more)
    torch.distributed.barrier()


# -- checkpoints -------------------------------------------------------------------------------------------------------


def save_shards(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write the parts of trained weights and of the optimiser's state, each process its own.

    Args:
        folder: of the checkpoint.
        model: sharded.
        optimizer: of its weights.
    """
    checkpoint = importlib.import_module("torch.distributed.checkpoint")
    checkpoint.save(_state(model, optimizer), checkpoint_id=str(folder / SHARDS))


def load_shards(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Take over what `save_shards` wrote.

    Raises:
        UsageError: the checkpoint was made without sharding.
    """
    if not (folder / SHARDS / ".metadata").is_file():
        raise UsageError(
            f"{folder} has no folder {SHARDS!r}: its training was not sharded; resume with trainer.sharding=none, or "
            "begin in another folder (--output)"
        )
    checkpoint = importlib.import_module("torch.distributed.checkpoint")
    state = _state(model, optimizer)
    checkpoint.load(state, checkpoint_id=str(folder / SHARDS))
    set_state = importlib.import_module("torch.distributed.checkpoint.state_dict").set_state_dict
    set_state(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
        options=_options(),
    )


def _state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    get_state = importlib.import_module("torch.distributed.checkpoint.state_dict").get_state_dict
    weights, updates = get_state(model, optimizer, options=_options())
    # Of a frozen weight with two names, the second one is left.
    frozen = {name for name, value in model.named_parameters(remove_duplicate=False) if not value.requires_grad}
    return {"model": {name: weights[name] for name in weights if name not in frozen}, "optimizer": updates}


def _options() -> Any:
    made = importlib.import_module("torch.distributed.checkpoint.state_dict").StateDictOptions
    # Below adapters, the weights are those of the folder that was loaded.
    return made(ignore_frozen_params=True, strict=False)


# -- parts of a model --------------------------------------------------------------------------------------------------


def _form_group(device: torch.device) -> None:
    """A group of one process, where nobody has formed one: it shards nothing, and computes in the same way."""
    if not torch.distributed.is_initialized():
        backend = "nccl" if device.type == "cuda" else "gloo"
        alone: Any = importlib.import_module("torch.distributed").HashStore()
        torch.distributed.init_process_group(backend, store=alone, rank=0, world_size=1)


def _layers(model: Any) -> list[nn.Module]:
    """The layers, as the model itself names their classes; the members of its lists of modules, if it does not."""
    own: Any = model.get_base_model() if hasattr(model, "get_base_model") else model
    names = set(getattr(own, "_no_split_modules", None) or ())
    found = [each for each in own.modules() if type(each).__name__ in names]
    return found or [each for group in own.modules() if isinstance(group, nn.ModuleList) for each in group]


def _units(model: nn.Module) -> list[nn.Module]:
    kind = importlib.import_module("torch.distributed.fsdp").FSDPModule
    return [each for each in model.modules() if isinstance(each, kind)]
