"""The device that a training computes on: what is asked for is there, or it is an error before any work begins."""

from __future__ import annotations

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
