"""A fresh container per execution, by the docker engine's API on its socket.

No network, a read-only root, one tmpfs, no capability, no new privileges, bounds on memory, processes and CPU. The
container is removed in every case, a cancelled one too. Not exercised against a real docker daemon.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from concertino_code.execution import Ending, Execution, Stream
from concertino_code.limits import DEFAULT, Limits
from concertino_code.sandbox import Sandbox, SandboxFault

from . import shipping
from .http import Service

if TYPE_CHECKING:
    import aiohttp

IMAGE = "python:3.12-slim"
_API = "/v1.41"
_SETUP_SECONDS = 30.0
_MB = 1 << 20
_WORD = 100_000
_MOST_WORDS = 16
_FRAME = struct.Struct(">BxxxI")


class DockerSandbox(Sandbox):
    """Scripts in docker containers.

    Args:
        image: an image with Python >= 3.9 as `python3`; it must be there already.
        limits: of an execution that names none.
        network: whether containers get docker's default network.
        socket: path of the daemon's socket; by default that of DOCKER_HOST, or docker's usual one.
        url: address of the daemon where it listens on TCP; then `socket` is not used.
    """

    level = "docker"

    def __init__(
        self,
        image: str = IMAGE,
        *,
        limits: Limits = DEFAULT,
        network: bool = False,
        socket: str | None = None,
        url: str = "",
    ) -> None:
        self.image = image
        self.limits = limits
        self.network = network
        host = os.environ.get("DOCKER_HOST", "")
        socket = socket or (host.removeprefix("unix://") if host.startswith("unix://") else "/var/run/docker.sock")
        self._service = Service("docker", url.rstrip("/") or "http://docker", unix_socket="" if url else socket)

    @property
    def description(self) -> str:
        """The rules for scripts."""
        network = "the network is open" if self.network else "there is no network"
        return f"Each script runs alone in a container of {self.image}; {network}. Limit: {self.limits.wall:g} s."

    async def run(
        self,
        code: str,
        *,
        limits: Limits | None = None,
        stdin: str | bytes = b"",
        files: Mapping[str, bytes | str] | None = None,
        artefacts: Sequence[str] = (),
        seed: int | None = None,
    ) -> Execution:
        """As `Sandbox.run` says."""
        limits = limits or self.limits
        job = shipping.payload(code, limits, stdin, files, artefacts, seed)
        if len(job) > _WORD * _MOST_WORDS:
            raise ValueError(f"code and files are {len(job)} bytes when packed; docker takes {_WORD * _MOST_WORDS}")
        name = f"concertino-{uuid.uuid4().hex}"
        made = asyncio.ensure_future(self._create(name, self._specification(job, limits)))
        try:
            await asyncio.shield(made)
            return await self._follow(name, limits)
        except SandboxFault as error:
            raise type(error)(str(error), executed=error.executed and self.network) from error
        finally:
            await asyncio.shield(asyncio.ensure_future(self._remove(name, made)))

    async def _create(self, name: str, specification: dict[str, Any]) -> None:
        path = f"{_API}/containers/create?name={name}"
        await self._service.ask("POST", path, body=specification, seconds=_SETUP_SECONDS)

    async def _follow(self, name: str, limits: Limits) -> Execution:
        """Attach, start, read to the end, and look at what ended it."""
        began = time.monotonic()
        path = f"{_API}/containers/{name}/attach?stream=1&stdout=1&stderr=1"
        try:
            async with self._service.stream("POST", path, seconds=limits.wall + _SETUP_SECONDS) as response:
                await self._service.ask("POST", f"{_API}/containers/{name}/start", seconds=_SETUP_SECONDS)
                text = await _read_frames(response)
        finally:
            seconds = time.monotonic() - began
        state = (await self._service.ask("GET", f"{_API}/containers/{name}/json", seconds=_SETUP_SECONDS))["State"]
        if state.get("OOMKilled"):
            return Execution(Ending.MEMORY, None, Stream(), Stream(), seconds)
        return shipping.read_line(text, limits, "docker")

    async def _remove(self, name: str, made: asyncio.Future[None]) -> None:
        """Whatever became of it; a container that is just being made is waited for."""
        await asyncio.wait({made}, timeout=_SETUP_SECONDS)
        if made.done() and not made.cancelled() and made.exception() is None:
            with contextlib.suppress(SandboxFault):
                path = f"{_API}/containers/{name}?force=1&v=1"
                await self._service.ask("DELETE", path, seconds=_SETUP_SECONDS)

    def _specification(self, job: str, limits: Limits) -> dict[str, Any]:
        words = [job[place : place + _WORD] for place in range(0, len(job), _WORD)]
        start = f"{shipping.program()}\n\nmain(''.join(sys.argv[1:]))\n"
        size = f"size={limits.disk_mb * _MB},nr_inodes={limits.inodes},mode=1777"
        return {
            "Image": self.image,
            "Cmd": ["python3", "-I", "-c", start, *words],
            "User": "65534:65534",
            "WorkingDir": "/tmp",
            "Env": ["LANG=C.UTF-8"],
            "NetworkDisabled": not self.network,
            "AttachStdout": True,
            "AttachStderr": True,
            "HostConfig": {
                "NetworkMode": "bridge" if self.network else "none",
                "ReadonlyRootfs": True,
                "Tmpfs": {"/tmp": f"rw,nosuid,nodev,{size}"},
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "Memory": (limits.tree_mb + 64) * _MB,
                "MemorySwap": (limits.tree_mb + 64) * _MB,
                "PidsLimit": limits.processes + 8,
                "NanoCpus": 1_000_000_000,
                "Init": True,
                "LogConfig": {"Type": "none"},
            },
        }


async def _read_frames(response: aiohttp.ClientResponse) -> str:
    """The container's stdout, out of docker's frames; the runner's line is all that is in it."""
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > 64 * _MB:
            raise SandboxFault("docker sent more than 64 MB", executed=True)
    text = bytearray()
    place = 0
    while place + _FRAME.size <= len(data):
        _, size = _FRAME.unpack_from(data, place)
        place += _FRAME.size
        text += data[place : place + size]
        place += size
    return text.decode("utf-8", "replace")
