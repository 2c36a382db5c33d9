"""What a training computes on and with: what is asked for is there, or it is an error before any work begins."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

from concertino import UsageError

from concertino_train.settings import Precision

if TYPE_CHECKING:
    import torch


def computing_precision(asked: Precision, *, on_cpu: bool) -> Precision:
    """What is computed in: what was asked for; of `auto`, bfloat16 on an accelerator and float32 on a CPU."""
    if asked != "auto":
        return asked
    return "float32" if on_cpu else "bfloat16"


def computing_in(asked: Precision, device: torch.device) -> contextlib.AbstractContextManager[object]:
    """Compute in the precision of a training, and make 16 bits of each trained weight once and not in every pass."""
    import torch

    precision = computing_precision(asked, on_cpu=device.type == "cpu")
    if precision == "float32":
        return contextlib.nullcontext()
    # Made 16-bit weights are kept until the outermost of these blocks is left. A trainer opens one for each pass, and
    # in sampling each token is a pass: all weights would be read in 32 bits for it.
    return torch.autocast(device.type, getattr(torch, precision))


def check_device(device: str, asked: str) -> None:
    """Refuse `cuda` where torch sees none.

    Args:
        device: `cpu`, `cuda`, or `auto` for what there is.
        asked: where it was said, such as `SftSettings(device='cuda')`.

    Raises:
        UsageError: there is no such device; says what to take.
    """
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"{asked}: torch sees no CUDA device here; take 'cpu'")


def optimizer_argument(optimizer: str, *, sharded: bool) -> dict[str, str]:
    """An optimiser as an argument of transformers; nothing for its own choice, an AdamW.

    Args:
        optimizer: `adamw` or `adamw_8bit`.
        sharded: whether weights are spread over processes.

    Raises:
        UsageError: it needs what is not installed, or does not go with sharding.
    """
    if optimizer == "adamw":
        return {}
    if sharded:
        raise UsageError(
            "trainer.optimizer=adamw_8bit with trainer.sharding=full: its blocks of 8 bits cannot be spread over "
            "processes; take trainer.optimizer=adamw, whose state is shared out, or trainer.sharding=none"
        )
    if find_spec("bitsandbytes") is None:
        raise UsageError(
            "trainer.optimizer=adamw_8bit needs bitsandbytes, which is not installed; pip install bitsandbytes, or "
            "take trainer.optimizer=adamw"
        )
    return {"optim": "adamw_bnb_8bit"}
