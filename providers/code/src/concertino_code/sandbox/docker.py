"""A fresh container per execution, made with the docker engine's API on its socket.

The container has no network, a read-only root, one tmpfs, no capabilities, no new privileges, and bounds on memory,
processes and CPU. It is removed in every case, after a cancellation too. Inside, `runner` is process 1: it puts the
script under the same filter of system calls as the jails of this machine, besides docker's own, and prints one line
about it. Needs docker's engine: podman's answers the same requests, but refuses a bound on the number of files.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import os
import struct
import time
import uuid
import zlib
from collections.abc import AsyncIterator, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from concertino_code.jail import seccomp, syscalls

from .base import Sandbox, SandboxFault, SandboxUnavailable, Script
from .limits import DEFAULT, ScriptLimits
from .outcome import Ending, ScriptOutcome, Stream, outcome_of
from .runner import MARK

if TYPE_CHECKING:
    import aiohttp

IMAGE = "python:3.12-slim"
# That of Docker 20.10; newer daemons still speak it.
_API = "/v1.41"
_SETUP_SECONDS = 30.0
_MB = 1 << 20
_MOST_BYTES = 64 * _MB
_ARGUMENT_CHARS = 100_000
"""Characters of one argument; Linux takes 128 KB."""
_MOST_ARGUMENTS = 16
_MASKED = (
    "/sys",
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
)
"""Docker's own list, with all of /sys: scripts need nothing of it, and it tells of the machine's hardware."""
_FRAME = struct.Struct(">BxxxI")


class DockerSandbox(Sandbox):
    """Scripts in docker containers. Needs aiohttp: `pip install 'concertino-code[docker]'`.

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
        limits: ScriptLimits = DEFAULT,
        network: bool = False,
        socket: str | None = None,
        url: str = "",
    ) -> None:
        self.image = image
        self.limits = limits
        self.network = network
        host = os.environ.get("DOCKER_HOST", "")
        socket = socket or (host.removeprefix("unix://") if host.startswith("unix://") else "/var/run/docker.sock")
        self._url = url.rstrip("/") or "http://docker"
        self._socket = "" if url else socket

    @property
    def description(self) -> str:
        """The rules for scripts."""
        network = "the network is open" if self.network else "there is no network"
        return f"Each script runs alone in a container of {self.image}; {network}. Limit: {self.limits.wall:g} s."

    async def execute(self, script: Script) -> ScriptOutcome:
        """Run a checked script; raises as `run` does."""
        job = _pack(
            {
                "code": _encode(script.code),
                "limits": script.limits.to_wire(),
                "stdin": _encode(script.stdin),
                "files": {name: _encode(data) for name, data in script.files.items()},
                "artefacts": list(script.artefacts),
                "seed": script.seed,
                # One for each machine, since the daemon's may be another one.
                "filters": {
                    name: _encode(seccomp.build(network=self.network, machine=name)) for name in syscalls.MACHINES
                },
            }
        )
        most = _ARGUMENT_CHARS * _MOST_ARGUMENTS
        if len(job) > most:
            raise ValueError(f"code and files are {len(job)} bytes when packed; docker takes {most}")
        name = f"concertino-{uuid.uuid4().hex}"
        # Shielded: a container whose creation was cancelled half-way could not be removed.
        made = asyncio.ensure_future(self._create(name, self._specification(job, script.limits)))
        try:
            await asyncio.shield(made)
            return await self._follow(name, script.limits)
        except SandboxFault as error:
            # Without a network, a script has no effect outside and may run again.
            raise type(error)(str(error), executed=error.executed and self.network) from error
        finally:
            await asyncio.shield(asyncio.ensure_future(self._remove(name, made)))

    async def _create(self, name: str, specification: dict[str, Any]) -> None:
        await self._ask("POST", f"/containers/create?name={name}", specification)

    async def _follow(self, name: str, limits: ScriptLimits) -> ScriptOutcome:
        """Attach, start, read to the end, and look at what ended it."""
        began = time.monotonic()
        path = f"/containers/{name}/attach?stream=1&stdout=1&stderr=1"
        try:
            # Attached before the start, so that no output is missed.
            async with self._request("POST", path, seconds=limits.wall + _SETUP_SECONDS) as response:
                await self._ask("POST", f"/containers/{name}/start")
                output = _unframed(await _read(response))
        finally:
            seconds = time.monotonic() - began
        container = await self._ask("GET", f"/containers/{name}/json")
        if not isinstance(container, dict) or not isinstance(state := container.get("State"), dict):
            raise SandboxFault(
                f"docker described the container in an unknown form: {str(container)[:80]}", executed=True
            )
        if state.get("OOMKilled"):
            return ScriptOutcome(Ending.MEMORY, None, Stream(), Stream(), seconds)
        return _read_result(output, limits)

    async def _remove(self, name: str, made: asyncio.Future[None]) -> None:
        """Remove the container, whatever happened to it; one that is still being made is waited for."""
        await asyncio.wait({made}, timeout=_SETUP_SECONDS)
        if made.done() and not made.cancelled() and made.exception() is None:
            with contextlib.suppress(SandboxFault):
                await self._ask("DELETE", f"/containers/{name}?force=1&v=1")

    def _specification(self, job: str, limits: ScriptLimits) -> dict[str, Any]:
        words = [job[place : place + _ARGUMENT_CHARS] for place in range(0, len(job), _ARGUMENT_CHARS)]
        runner = resources.files(__package__).joinpath("runner.py").read_text(encoding="utf-8")
        start = f"{runner}\n\nmain(''.join(sys.argv[1:]))\n"
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
                "MaskedPaths": list(_MASKED),
                "Memory": (limits.tree_mb + 64) * _MB,
                # Docker counts memory and swap together: equal numbers mean no swap.
                "MemorySwap": (limits.tree_mb + 64) * _MB,
                "PidsLimit": limits.processes + 8,
                "NanoCpus": 1_000_000_000,
                "IpcMode": "private",
                "ShmSize": limits.disk_mb * _MB,
                # The runner is process 1, which no script can kill; docker's own init could be written to.
                "Init": False,
                # The output is read by the attachment; the daemon would write it to the host's disk as well.
                "LogConfig": {"Type": "none"},
            },
        }

    # -- the engine's API ----------------------------------------------------------------------------------------------

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """One exchange of JSON; None for an empty answer."""
        async with self._request(method, path, body) as response:
            data = await _read(response)
        if not data.strip():
            return None
        try:
            return json.loads(data)
        except ValueError:
            raise SandboxFault(f"docker answered with invalid JSON: {data[:80]!r}", executed=True) from None

    @contextlib.asynccontextmanager
    async def _request(
        self, method: str, path: str, body: Any = None, *, seconds: float = _SETUP_SECONDS
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response whose body is still to be read, all within so many seconds.

        Raises:
            SandboxUnavailable: docker refuses the request, as it would again.
            SandboxFault: it could not be reached, failed, or took too long.
        """
        try:
            import aiohttp
        except ImportError:
            raise SandboxUnavailable("docker needs aiohttp: pip install 'concertino-code[docker]'") from None
        connector = aiohttp.UnixConnector(self._socket) if self._socket else None
        timeout = aiohttp.ClientTimeout(total=seconds)
        try:
            async with (
                asyncio.timeout(seconds),
                aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
                session.request(method, self._url + _API + path, json=body, allow_redirects=False) as response,
            ):
                if response.status >= 300:
                    raise await _refusal(response)
                yield response
        except aiohttp.ClientConnectorError as error:
            raise SandboxFault(f"docker cannot be reached: {error}") from error
        except aiohttp.ClientError as error:
            raise SandboxFault(f"docker: {type(error).__name__}: {error}", executed=True) from error
        except TimeoutError:
            raise SandboxFault(f"docker gave no answer within {seconds:g} s", executed=True) from None


async def _refusal(response: aiohttp.ClientResponse) -> SandboxFault:
    text = (await response.content.read(400)).decode("utf-8", "replace").strip()
    message = f"docker answered {response.status}: {text}"
    if response.status in (408, 429) or response.status >= 500:
        return SandboxFault(message, executed=response.status not in (429, 503))
    return SandboxUnavailable(message)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The whole body, unless it is larger than any that is expected."""
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > _MOST_BYTES:
            raise SandboxFault(f"docker sent more than {_MOST_BYTES} bytes", executed=True)
    return bytes(data)


def _unframed(data: bytes) -> str:
    """The container's output without docker's frames; the runner's line is all that is in it."""
    text = bytearray()
    place = 0
    while place + _FRAME.size <= len(data):
        _, size = _FRAME.unpack_from(data, place)
        place += _FRAME.size
        text += data[place : place + size]
        place += size
    return text.decode("utf-8", "replace")


def _read_result(output: str, limits: ScriptLimits) -> ScriptOutcome:
    """The execution that the runner's line describes.

    Raises:
        SandboxFault: the line does not exist, or it is damaged.
    """
    _, found, line = output.rpartition(MARK)
    if not found:
        raise SandboxFault(f"docker gave no result: {output.strip()[-200:]!r}", executed=True)
    try:
        result: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(line.split()[0])))
        blobs = [base64.b64decode(word) for word in result.pop("streams")]
        blobs += [base64.b64decode(file.get("data", "")) for file in result["files"].values()]
        return outcome_of(result, blobs, limits)
    except (ValueError, IndexError, KeyError, zlib.error, binascii.Error) as error:
        raise SandboxFault(f"docker gave a damaged result: {type(error).__name__}: {error}", executed=True) from error


def _pack(job: Mapping[str, Any]) -> str:
    """A job as one word of ASCII, as the runner unpacks it."""
    return _encode(zlib.compress(json.dumps(job).encode("ascii")))


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
