"""A server's process: its command, port, log and scratch folder, under the SDK's guardian.

Invariant: whatever ends this process or the server, the server's processes end within the grace, and its shared memory
and its scratch folder are removed. The log of a server that was not told to end is kept, for it says why.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
from concurrent.futures import Future
from pathlib import Path

from concertino.executor import ChildProcess

from concertino_vllm.errors import VllmServerError
from concertino_vllm.executable import find_executable
from concertino_vllm.settings import VllmSettings

from .end_causes import END

LOG_BYTES = 64 << 20
"""From this size on, a log in a temporary folder is cut: a server that is asked for weeks would fill the disk."""
_LONGEST_SCRATCH = 60
"""Characters: names of sockets are appended to it, and the system allows 107 for both."""


class PortTaken(Exception):
    """The port belongs to another process."""


class VllmProcess:
    """A `vllm serve` that was started.

    Attributes:
        port: the port that it listens on.
        log: the file that takes its output.
        started: its process id.
        exited: its exit code, as soon as it has ended itself.
        ended: the same, once nothing that it started is left.

    Raises:
        VllmServerError: it cannot be started; says why.
        PortTaken: the port belongs to another process.
    """

    def __init__(self, settings: VllmSettings) -> None:
        executable = find_executable(settings.executable)
        _check_folders(settings)
        self._told_to_end = self._keep_log = False
        self._held: socket.socket | None = None
        self._home = Path(tempfile.mkdtemp(prefix="concertino-vllm-", dir=_short_folder()))
        self._temporary_log = not settings.log
        self.log = self._home / "server.log" if self._temporary_log else Path(settings.log).expanduser().absolute()
        self._scratch = self._home / "tmp" if self._temporary_log else self._home
        try:
            self._scratch.mkdir(exist_ok=True)
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self._held = _hold_port(settings.host, settings.port)
            self.port = int(self._held.getsockname()[1])
            if sys.platform != "linux":  # where a bound socket keeps the server itself from binding
                self._release_port()
            with self.log.open("ab") as log:
                self._child = ChildProcess(
                    [part.replace("{port}", str(self.port)) for part in settings.command(executable)],
                    env=settings.environment(executable, self._scratch),
                    stdout=log,
                    stderr=log,
                    grace=settings.grace_seconds,
                    orphan_grace=settings.grace_seconds,
                    orphaned_folders=[self._home],
                    # vLLM leaves its objects in /dev/shm behind when it is killed.
                    shared_memory=True,
                    on_end=self._clear,
                )
        except BaseException:
            self._release_port()
            shutil.rmtree(self._home, ignore_errors=True)
            raise
        self.started: Future[int] = self._child.started
        self.exited: Future[int] = self._child.exited
        self.ended: Future[int] = self._child.ended
        self.exited.add_done_callback(self._note_unasked_end)

    def note_shared_memory(self) -> None:
        """Note what it holds in /dev/shm, in case all of its processes are killed at once."""
        self._child.note_shared_memory()

    def remove_if_orphaned(self, folder: Path) -> None:
        """Have a folder removed with it, if this process ends without doing so."""
        self._child.remove_if_orphaned(folder)

    def stop(self, *, failed: bool = False) -> None:
        """Ask for the end; `ended` is set when it has come. `failed` keeps the log."""
        self._told_to_end = True
        self._keep_log = self._keep_log or failed
        self._child.stop()

    def shorten_log(self) -> None:
        """Cut a temporary log to its last lines if it is long. The server appends to it, and continues behind them."""
        if not self._temporary_log:
            return
        with contextlib.suppress(OSError), self.log.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if size > LOG_BYTES:
                file.seek(size - END)
                last = file.read(END)
                file.truncate(0)
                file.seek(0)
                file.write(last)

    def discard_log(self) -> None:
        """Remove a temporary log that says nothing of interest."""
        if self._temporary_log:
            shutil.rmtree(self._home, ignore_errors=True)

    def _note_unasked_end(self, _: object) -> None:
        self._keep_log = self._keep_log or not self._told_to_end

    def _release_port(self) -> None:
        if self._held is not None:
            self._held.close()

    def _clear(self, _: int) -> None:
        self._release_port()
        shutil.rmtree(self._scratch, ignore_errors=True)
        if self._told_to_end and not self._keep_log:
            self.discard_log()


def _check_folders(settings: VllmSettings) -> None:
    if settings.folder is not None and not settings.folder.exists():
        raise VllmServerError(f"model = {settings.model!r}: there is no {settings.folder}; correct the folder")
    for name, folder in settings.adapters:
        if not (Path(folder).expanduser() / "adapter_config.json").is_file():
            raise VllmServerError(
                f"adapters: {name} = {folder!r} holds no adapter_config.json; expected an adapter's folder"
            )


def _hold_port(host: str, port: int) -> socket.socket:
    """Bind a port without listening, so that nobody else is given it before the server listens."""
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    # On Linux, two sockets with this option may hold one port while neither listens; vLLM sets it too.
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((host, port))
    except OSError:
        held.close()
        raise PortTaken from None
    return held


def _short_folder() -> str | None:
    """Where the scratch folder goes: the usual place, unless names of sockets would not fit behind it."""
    usual = tempfile.gettempdir()
    short = "/tmp"
    return short if len(usual) + 30 > _LONGEST_SCRATCH and os.access(short, os.W_OK) else None
