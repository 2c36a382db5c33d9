"""Weights through the memory of one GPU: this process fills a buffer, the workers open it and copy.

The buffer has a fixed size, so a model of any size passes through it piece by piece, and no second copy of the weights
is made on the device. The invariant: a piece is not overwritten before the server has said that all workers copied it.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from concertino import FailureClass, ProviderError

from concertino_vllm.serving.client import VllmClient
from concertino_vllm.serving.state import ServerAddress

from .transfer import Phases, WeightTransfer, check_version
from .weights import Outgoing, State

PIECE_BYTES = 512 * 2**20
"""Size of the buffer, unless one tensor alone is larger."""


class SharedBuffer:
    """Bytes on a GPU that another process can open."""

    def __init__(self, size: int, device: Any) -> None:
        import torch

        self._torch, self._device = torch, device
        # A current device belongs to a thread, and this runs in several.
        with torch.cuda.device(device):
            self.bytes = torch.empty(size, dtype=torch.uint8, device=device)
        self.gpu = str(torch.cuda.get_device_properties(device).uuid)

    def fill(self, tensors: list[Outgoing]) -> None:
        """Write tensors side by side, and wait until they are there."""
        with self._torch.cuda.device(self._device):
            write_side_by_side(self.bytes, tensors)
            self._torch.cuda.current_stream().synchronize()

    def handle(self) -> tuple[Any, ...]:
        """What torch needs in the other process to open it."""
        from torch.multiprocessing import reductions

        reduce: Any = reductions.reduce_tensor  # without type hints
        with self._torch.cuda.device(self._device):
            return tuple(reduce(self.bytes)[1])


class IpcTransfer(WeightTransfer):
    """Memory of this process on the GPU that the server uses too.

    Args:
        extended: the workers have our extension, which takes the handle as plain data. Without it vLLM unpickles what
            is sent to it, and does so only when it was started with VLLM_ALLOW_INSECURE_SERIALIZATION=1.
    """

    name = "ipc"

    def __init__(self, *, extended: bool) -> None:
        self._extended = extended
        self._agreed: ServerAddress | None = None
        self.state: State = {}

    async def send(self, wire: VllmClient, endpoint: ServerAddress, seconds: float) -> None:
        """See `WeightTransfer.send`."""
        phases = Phases(wire, seconds)
        if self._agreed is not endpoint:
            await check_version(wire)
            await phases.init({"packed": True})
        # Whatever fails from here on, the next attempt begins with init again.
        self._agreed = None
        await phases.start()
        # torch keeps a buffer that another process opened until that one closes it, so it is made anew each time.
        buffer = await asyncio.to_thread(self._open)
        handle = await asyncio.to_thread(buffer.handle)
        for piece in pieces(self.state, buffer.bytes.numel()):
            await asyncio.to_thread(buffer.fill, [tensor for _, tensor in piece])
            await self._hand_over(phases, _described(piece), buffer.gpu, handle)
        await phases.finish()
        self._agreed = endpoint

    def _open(self) -> SharedBuffer:
        sizes = [tensor.size for tensor in self.state.values()]
        devices = (tensor.tensor.device for tensor in self.state.values() if tensor.tensor.is_cuda)
        size = min(sum(sizes), PIECE_BYTES)
        return SharedBuffer(max(size, *sizes), next(devices, "cuda:0"))

    async def _hand_over(self, phases: Phases, info: dict[str, Any], gpu: str, handle: tuple[Any, ...]) -> None:
        if not self._extended:
            import pickle

            packed = base64.b64encode(pickle.dumps({gpu: handle})).decode()
            await phases.update({**info, "ipc_handles_pickled": packed})
            return
        plain = json.dumps([_plain(part) for part in handle])
        options = {"info": json.dumps(info), "gpu": gpu, "handle": plain}
        body = {"method": "concertino_open_weights", "kwargs": options}
        answer = await phases.wire.post("/collective_rpc", body, seconds=phases.seconds)
        results = answer.get("results") if isinstance(answer, Mapping) else None
        if not results or not all(isinstance(result, Mapping) for result in results):
            raise ProviderError(
                f"POST {phases.wire.base}/collective_rpc: {str(answer)[:100]!r}; expected an answer of each worker",
                failure=FailureClass.MAYBE_EXECUTED,
            )
        for result in results:
            if "error" in result:
                raise ProviderError(f"a worker could not take the weights: {result['error']}")


def pieces(state: State, capacity: int) -> Iterator[list[tuple[str, Outgoing]]]:
    """A state in pieces that fit into a buffer.

    Wide numbers come first: a float32 behind an odd number of bfloat16 would begin where it cannot be read.
    """
    piece: list[tuple[str, Outgoing]] = []
    used = 0
    for name, tensor in sorted(state.items(), key=lambda item: -item[1].dtype.itemsize):
        if piece and used + tensor.size > capacity:
            yield piece
            piece, used = [], 0
        piece.append((name, tensor))
        used += tensor.size
    if piece:
        yield piece


def write_side_by_side(buffer: Any, tensors: list[Outgoing]) -> None:
    """Copy the bytes of tensors into a buffer, one behind the other."""
    import torch

    place = 0
    for tensor in tensors:
        flat = tensor.read().contiguous().view(-1).view(torch.uint8)
        buffer[place : place + flat.numel()].copy_(flat)
        place += flat.numel()


def _described(piece: list[tuple[str, Outgoing]]) -> dict[str, Any]:
    return {
        "names": [name for name, _ in piece],
        "dtype_names": [str(tensor.dtype).removeprefix("torch.") for _, tensor in piece],
        "shapes": [list(tensor.shape) for _, tensor in piece],
        "tensor_sizes": [tensor.size for _, tensor in piece],
    }


def _plain(part: Any) -> Any:
    """A part of a handle as JSON data; classes are known to the other side, and left out."""
    if isinstance(part, bytes):
        return {"bytes": base64.b64encode(part).decode()}
    if isinstance(part, (tuple, list)):  # a torch.Size, too
        return [int(number) for number in part]
    return part if part is None or isinstance(part, (bool, int)) else ""
