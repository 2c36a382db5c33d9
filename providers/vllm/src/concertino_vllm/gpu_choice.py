"""Which way weights take by default: that follows from the GPUs of this process and of the server.

Nothing is imported for it: torch is asked only where this process has loaded it, as a trainer has.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Literal

Way = Literal["folder", "ipc", "nccl"]
WAYS: tuple[Way, ...] = ("folder", "ipc", "nccl")
_SPREAD = frozenset(("--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp", "--data-parallel-size", "-dp"))


def usable(way: str) -> bool:
    """Whether this process can send weights this way."""
    if way == "nccl":
        return _gpu_here() is not None and importlib.util.find_spec("vllm") is not None
    return way == "folder" or (way == "ipc" and _gpu_here() is not None)


def way_by_default(device: str, args: Sequence[str]) -> Way:
    """How a server that is started here is to take weights.

    Args:
        device: the GPUs that it is given, such as `1` or `0,1`; "" for those that this process sees.
        args: of `vllm serve`.
    """
    mine = _gpu_here()
    if mine is None:
        return "folder"
    seen = _visible()
    given = device.split(",") if device else [seen[0] if seen else "0"]
    # Workers on several GPUs cannot all open the memory of one.
    if given == [mine] and not spread(args):
        return "ipc"
    return "nccl" if mine not in given and usable("nccl") else "folder"


def spread(args: Sequence[str]) -> bool:
    """Whether arguments put a server on several GPUs."""
    for place, part in enumerate(args):
        flag, _, value = part.partition("=")
        if flag.replace("_", "-") in _SPREAD:
            return (value or (args[place + 1] if place + 1 < len(args) else "")) != "1"
    return False


def _gpu_here() -> str | None:
    """The GPU that this process computes on, by its number on this machine; None without one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    place, seen = int(torch.cuda.current_device()), _visible()
    return seen[place] if place < len(seen) else str(place)


def _visible() -> list[str]:
    return [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
