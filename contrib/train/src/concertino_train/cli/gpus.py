"""GPUs as data: what each holds, how fast it computes, how fast it reads its memory. `2xH200` is two of one kind.

Figures are those of the makers' data sheets: dense bfloat16, without sparsity; those of this machine are measured. The
invariant: each is what the hardware can do at most; what a training reaches is a share of it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from concertino import UsageError
from concertino.schema import near_names


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of GPU.

    Attributes:
        name: as people say it.
        memory: bytes.
        rate: floating-point operations per second of dense products in bfloat16.
        bandwidth: bytes per second that it reads of its own memory.
    """

    name: str
    memory: int
    rate: float
    bandwidth: float


def _gpu(name: str, gigabytes: float, tflops: float, terabytes: float) -> Gpu:
    return Gpu(name, int(gigabytes * 1e9), tflops * 1e12, terabytes * 1e12)


GPUS = {
    gpu.name: gpu
    for gpu in (
        _gpu("B200", 192, 2250, 8.0),
        _gpu("H200", 141, 989, 4.8),
        _gpu("H100", 80, 989, 3.35),
        _gpu("H100-PCIe", 80, 756, 2.0),
        _gpu("A100-80GB", 80, 312, 2.04),
        _gpu("A100-40GB", 40, 312, 1.56),
        _gpu("MI300X", 192, 1307, 5.3),
        _gpu("L40S", 48, 362, 0.864),
        _gpu("A10", 24, 125, 0.6),
        _gpu("L4", 24, 60, 0.3),
        _gpu("RTX-4090", 24, 165, 1.01),
    )
}
_COUNTED = re.compile(r"(?:(\d{1,4})\s*[xX*]\s*)?([A-Za-z][\w-]*)")


def read_gpus(text: str) -> tuple[int, Gpu]:
    """How many GPUs a text such as `2xH200` or `A10` speaks of, and which.

    `here` is this machine: its GPU, else its CPU, measured for a second.

    Raises:
        UsageError: it has another form, or the GPU is not known; gives those that are.
    """
    if text.strip() == "here":
        return 1, _this_machine()
    found = _COUNTED.fullmatch(text.strip())
    if found is None or found[1] == "0":
        raise UsageError(f"--gpus {text}: expected a number and a name, such as 1xH200")
    kinds = {name.lower(): gpu for name, gpu in GPUS.items()}
    gpu = kinds.get(found[2].lower())
    if gpu is None:
        near = near_names(found[2], GPUS, 1)
        meant = f"; did you mean {near[0]}" if near else ""
        raise UsageError(f"--gpus {text}: {found[2]} is not known{meant}; known are {', '.join(GPUS)}")
    return int(found[1] or 1), gpu


def _this_machine() -> Gpu:
    try:
        import torch
    except ImportError:
        raise UsageError("--gpus here needs torch: pip install 'concertino-train'") from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rate = matrix_rate(device)
    block = torch.ones(2**26 if device == "cuda" else 2**23, device=device)
    # A copy reads and writes.
    bandwidth = 2 * 4 * block.numel() / min(_timed(block.clone, device) for _ in range(4))
    if device == "cuda":
        about = torch.cuda.get_device_properties(0)
        return Gpu(about.name, int(about.total_memory), rate, bandwidth)
    return Gpu("this CPU", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), rate, bandwidth)


def matrix_rate(device: str) -> float:
    """Floating-point operations per second of a matrix product on `cuda` or `cpu`; takes a second, and needs torch."""
    import torch

    # Large enough to fill the device, small enough to take a second.
    size, kind = (8192, torch.bfloat16) if device == "cuda" else (768, torch.float32)
    one = torch.ones(size, size, dtype=kind, device=device)
    # The first product pays for start-up; the best of four is what the machine can do.
    return 2.0 * size**3 / min(_timed(lambda: one @ one, device) for _ in range(4))


def _timed(work: Callable[[], Any], device: str) -> float:
    began = time.perf_counter()
    work()
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
    return time.perf_counter() - began
