"""Ways of weights into a running server: files, memory of the GPU that both share, or a broadcast between GPUs.

    folder   the workers read files that this process wrote; works everywhere
    ipc      the workers open memory of this process on the GPU that both use
    nccl     this process broadcasts to the workers on other GPUs; needs vLLM beside the trainer

`ipc` and `nccl` are the four phases of vLLM: init (once for every start of a server), start, update, finish. The
invariant of all three: when `send` has returned, every worker has said that it holds all weights; when it has raised,
nobody knows which weights the server holds. Every request has a time limit and its answer is read, since vLLM's own
clients have waited without end for a server that had refused.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from concertino import FailureClass, ProviderError

from concertino_vllm.serving.client import VllmClient, load_folder
from concertino_vllm.serving.state import ServerAddress

OLDEST = (0, 28)
"""The first vLLM whose trainer and workers agree on the format at init, and not with every update."""


class WeightTransfer(ABC):
    """One way of weights into a running server."""

    name: str

    @abstractmethod
    async def send(self, wire: VllmClient, endpoint: ServerAddress, seconds: float) -> None:
        """Have the workers hold the new weights. The server is paused, and its cache stays as it is.

        Args:
            wire: to the server.
            endpoint: this start of the server; another object after each start.
            seconds: how long each step may take.

        Raises:
            ProviderError: a step failed, or took too long.
        """


class FolderTransfer(WeightTransfer):
    """Files that all workers can read."""

    name = "folder"

    def __init__(self, folder: Path, *, extended: bool) -> None:
        self.folder, self._extended = folder, extended

    async def send(self, wire: VllmClient, endpoint: ServerAddress, seconds: float) -> None:
        """See `WeightTransfer.send`."""
        await load_folder(wire, self.folder, extended=self._extended, seconds=seconds)


class Phases:
    """The requests of the four phases. An answer that is not vLLM's counts as a failure."""

    def __init__(self, wire: VllmClient, seconds: float) -> None:
        self.wire, self.seconds = wire, seconds

    async def init(self, info: Mapping[str, Any]) -> None:
        """Agree on how weights come."""
        await self._post("/init_weight_transfer_engine", {"init_info": dict(info)})

    async def start(self) -> None:
        """Begin a change of weights."""
        await self._post("/start_weight_update", {})

    async def update(self, info: Mapping[str, Any]) -> None:
        """Hand over some weights, or all."""
        await self._post("/update_weights", {"update_info": dict(info)})

    async def finish(self) -> None:
        """End the change."""
        await self._post("/finish_weight_update", {})

    async def _post(self, path: str, body: Any) -> None:
        answer = await self.wire.post(path, body, seconds=self.seconds)
        if not isinstance(answer, Mapping) or not isinstance(answer.get("message"), str):
            raise ProviderError(
                f"POST {self.wire.base}{path}: {str(answer)[:100]!r} is not an answer of vLLM; expected a message; see "
                "what listens at this address",
                failure=FailureClass.MAYBE_EXECUTED,
            )


async def offered_by(wire: VllmClient) -> tuple[Literal["", "ipc", "nccl"], str]:
    """How a server takes weights besides from a folder ("" for not at all), and the name of its dtype."""
    config = (await wire.get("/server_info?config_format=json", seconds=60))["vllm_config"]
    backend = (config.get("weight_transfer_config") or {}).get("backend", "")
    dtype = str((config.get("model_config") or {}).get("dtype", "")).removeprefix("torch.")
    return backend if backend in ("ipc", "nccl") else "", dtype


async def check_version(wire: VllmClient) -> None:
    """Refuse a vLLM whose four phases are older than what is spoken here.

    Raises:
        ProviderError: it is too old, or does not say which version it is.
    """
    answer = await wire.get("/version", seconds=30)
    stated = str(answer.get("version", "")) if isinstance(answer, Mapping) else ""
    found = re.match(r"(\d+)\.(\d+)", stated)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        raise ProviderError(
            f"{wire.base} is vLLM {stated or 'of an unknown version'}; weights over ipc and nccl need 0.28 or newer: "
            "update vLLM, or set weights = 'folder'",
            failure=FailureClass.CALLER,
        )
