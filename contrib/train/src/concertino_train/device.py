"""What a training computes on and with: what is asked for is there, or it is an error before any work begins."""

from __future__ import annotations

from importlib.util import find_spec

from concertino import UsageError


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
