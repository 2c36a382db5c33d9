"""Checkpoints whose weights and optimiser state are in parts, as several processes wrote them.

The invariant: they are read by any number of processes, also by one that trains nothing.
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

SHARDS = "shards"
"""Folder of a checkpoint with the parts of the trained weights and of the optimiser's state."""


def shards_of(folder: Path) -> Path | None:
    """The checkpoint with the parts, where a folder describes such a one, or a role of it."""
    return next((each for each in (folder, folder.parent) if (each / SHARDS).is_dir()), None)


def merged_shards(folder: Path) -> dict[str, Tensor]:
    """The weights of a sharded checkpoint, put together by one process that is no part of a training.

    Args:
        folder: of the checkpoint.
    """
    import torch

    checkpoint = importlib.import_module("torch.distributed.checkpoint")
    reader = checkpoint.FileSystemReader(str(folder / SHARDS))
    known = reader.read_metadata().state_dict_metadata
    # The optimiser's state is several times as large, and nobody needs it here.
    found = {
        name: torch.empty(told.size, dtype=told.properties.dtype)
        for name, told in known.items()
        if name.startswith("model.") and hasattr(told, "size")
    }
    with warnings.catch_warnings():
        # That there are no other processes is what is meant.
        warnings.filterwarnings("ignore", message="torch.distributed is disabled", category=UserWarning)
        checkpoint.load(found, storage_reader=reader, no_dist=True)
    return {name.removeprefix("model."): value for name, value in found.items()}
