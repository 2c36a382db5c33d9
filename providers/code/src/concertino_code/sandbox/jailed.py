"""The sandbox on this machine: a zygote process that forks a jail per execution, spoken to from any event loop.

One socket pair per execution carries the request, the result and the order to end: closing it kills the jail. Nothing
here belongs to an event loop or a thread, so that one sandbox serves them all. A zygote that died is started again and
the executions that it took along are repeated once; scripts have no effect outside, so that is safe.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concertino_code import jail
from concertino_code.jail import wire

from .base import Sandbox, SandboxFault, SandboxUnavailable, Script
from .limits import DEFAULT, ScriptLimits
from .outcome import ScriptOutcome, outcome_of

PRELOAD = ("numpy", "sympy")
SCRIPT_USER = 61000
"""The host user that scripts run as when the caller is root."""
_SLACK = 30.0
_ERROR_BYTES = 1 << 16
_RULES = {
    "namespaces": "in Linux namespaces of its own",
    "bubblewrap": "in a bubblewrap jail",
    "landlock": "under landlock and seccomp, without namespaces",
    "limits": "under resource limits only: NOT a sandbox, it can read and send whatever this user can",
}


class JailedSandbox(Sandbox):
    """Scripts in jails on this machine (Linux).

    Args:
        level: how they are locked in.
        limits: of an execution that names none.
        network: whether scripts may use this machine's network, loopback included.
        preload: libraries that are loaded once, where they are installed.
        python: the interpreter of the scripts, by default this one.
        bwrap: path of the `bwrap` program, for its level.
    """

    def __init__(
        self,
        level: str = "namespaces",
        *,
        limits: ScriptLimits = DEFAULT,
        network: bool = False,
        preload: Sequence[str] = PRELOAD,
        python: str | os.PathLike[str] | None = None,
        bwrap: str | os.PathLike[str] | None = None,
    ) -> None:
        if level not in _RULES:
            raise ValueError(f"level={level!r}; expected one of {', '.join(_RULES)}")
        self.level = level
        self.limits = limits
        self.network = network
        self._python = os.fspath(python or sys.executable)
        self._configuration = json.dumps(
            {
                "level": level,
                "preload": list(preload),
                "network": network,
                "user": SCRIPT_USER,
                "bwrap": os.fspath(bwrap) if bwrap else "",
                "scratch": tempfile.gettempdir(),
            }
        )
        self._lock = threading.Lock()
        self._zygote: _Zygote | None = None
        self._closed = False

    @property
    def description(self) -> str:
        """The rules for scripts."""
        network = "the network is open" if self.network else "there is no network"
        most = self.limits
        return (
            f"Each script runs alone, {_RULES[self.level]}; {network}; only its working folder can be written, and "
            f"that is empty at first. Limits: {most.wall:g} s, {most.memory_mb} MB of memory, {most.disk_mb} MB of "
            f"files, {most.processes} processes."
        )

    @property
    def process_id(self) -> int | None:
        """Of the zygote; None while there is none."""
        zygote = self._zygote
        return zygote.process.pid if zygote is not None and zygote.owner == os.getpid() else None

    async def execute(self, script: Script) -> ScriptOutcome:
        """Run a checked script; raises as `run` does."""
        limits = script.limits
        message = {
            "limits": {**limits.to_wire(), "until": time.monotonic() + limits.total},
            "files": list(script.files),
            "artefacts": list(script.artefacts),
            "seed": script.seed,
        }
        request = wire.pack(message, [script.code, script.stdin, *script.files.values()])
        if len(request) > wire.MOST_BYTES:
            raise ValueError(f"code, stdin and files are {len(request)} bytes; at most {wire.MOST_BYTES} are taken")
        try:
            result, blobs = await self._exchange(request, limits)
        except _ZygoteDied:
            if self.network:  # then the script may have had effects outside
                raise SandboxFault("the sandbox's process died; the script may have run", executed=True) from None
            result, blobs = await self._exchange(request, limits)
        if "fault" in result:
            raise SandboxFault(f"the sandbox could not be set up: {result['fault']}")
        return outcome_of(result, blobs, limits)

    async def _exchange(self, request: bytes, limits: ScriptLimits) -> tuple[dict[str, Any], list[bytes]]:
        """One request to a supervisor, and its answer."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours:
            ours.setblocking(False)
            with theirs:
                zygote = self._living()
                await zygote.hand_over(theirs)
            try:
                async with asyncio.timeout(limits.wall + _SLACK):
                    await loop.sock_sendall(ours, request)
                    return await _answer(loop, ours)
            except TimeoutError:
                raise SandboxFault(f"no answer within {limits.wall + _SLACK:g} s") from None
            except (OSError, EOFError):
                raise self._died(zygote) from None

    def _living(self) -> _Zygote:
        """The zygote, started if there is none."""
        with self._lock:
            if self._closed:
                raise SandboxUnavailable("this sandbox was closed")
            if self._zygote is not None and self._zygote.owner != os.getpid():
                self._zygote = None  # this process was forked from the one that it belongs to
            if self._zygote is None or not self._zygote.alive():
                if self._zygote is not None:
                    self._zygote.close()
                self._zygote = _Zygote(self._python, self._configuration)
            return self._zygote

    def _died(self, zygote: _Zygote) -> Exception:
        """The error of a broken connection, with what the zygote reported."""
        why = zygote.last_words()
        if why:
            return SandboxUnavailable(f"the level {self.level!r} cannot be used here: {why}")
        return _ZygoteDied("the sandbox's process died, or the jail of this execution did")

    async def close(self) -> None:
        """End the zygote, and every jail with it."""
        self.close_now()

    def close_now(self) -> None:
        """End the zygote and every jail from plain code, such as an exit function."""
        with self._lock:
            self._closed = True
            zygote, self._zygote = self._zygote, None
        if zygote is not None and zygote.owner == os.getpid():
            zygote.close()


class _ZygoteDied(SandboxFault):
    """The zygote, or the supervisor of this execution, ended without an answer."""


class _Zygote:
    """One zygote process and our end of its socket."""

    def __init__(self, python: str, configuration: str) -> None:
        self.owner = os.getpid()
        # Datagrams, since two requests with their descriptors could run together in a stream.
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        self._said = ""
        folder = str(Path(jail.__file__).parent)
        with theirs:
            command = [python, "-I", "-c", jail.BOOT, folder, "zygote", str(theirs.fileno()), configuration]
            try:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    cwd="/",
                    env=_environment(),
                )
            except OSError as error:
                self._socket.close()
                raise SandboxUnavailable(f"{python} cannot be started: {error}") from error

    def alive(self) -> bool:
        """Whether its process runs."""
        return self.process.poll() is None

    async def hand_over(self, connection: socket.socket) -> None:
        """Give it the other end of an execution's connection."""
        while True:
            try:
                socket.send_fds(self._socket, [b"x"], [connection.fileno()])
                return
            except BlockingIOError:
                await asyncio.sleep(0.005)  # more executions at once than a socket's queue holds
            except OSError:
                return  # it died, which the connection shows, now as later

    def last_words(self) -> str:
        """Why it could not start, if that is how it ended."""
        for _ in range(8):
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:
                continue  # reported once, before its message, if it left a request unread
            if not data:
                break
            self._said = json.loads(data).get("fault", "")
        if self._said:
            return self._said
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.05)
        if self.process.returncode and self.process.returncode > 0 and self.process.stderr is not None:
            os.set_blocking(self.process.stderr.fileno(), False)
            text = (self.process.stderr.read(_ERROR_BYTES) or b"").decode("utf-8", "replace").strip()
            self._said = text.splitlines()[-1][:300] if text else f"its process ended with {self.process.returncode}"
        return self._said

    def close(self) -> None:
        """End it."""
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()


def _environment() -> dict[str, str]:
    """Nothing of the caller's environment."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # An arena for each thread would use up the address space with a few threads.
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "2", **threads}


async def _answer(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> tuple[dict[str, Any], list[bytes]]:
    data = bytearray()
    while (answer := wire.unpack(data)) is None:
        more = await loop.sock_recv(connection, 1 << 18)
        if not more:
            raise EOFError
        data += more
    return answer
