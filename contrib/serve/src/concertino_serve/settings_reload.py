"""The presets of a server that runs are those of its settings file: it is read again when it, or a pool file that it
names, was changed, and when it is told to.

Invariant: a request gets the presets of one reading, and its run keeps them to its end, also over a suspension. A file
with a mistake changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from concertino.core.errors import ConcertinoError
from concertino.core.logs import logger_of

from .key_ring import check_preset_budgets
from .serve_settings import ServeSettings, read_serve_settings
from .serving import Serving

_LOOK = 1.0
"""Seconds between two looks at the files."""
_FIXED = ("keys", "limits", "traces", "hosts", "origins")
"""Settings that need a new start."""
logger = logger_of("serve")
_Stamps = tuple[tuple[int, int, int] | None, ...]


class SettingsReload:
    """Reads the settings of a server again.

    Args:
        file: the settings file.
        pause: seconds between two looks at it.

    Attributes:
        swaps: how often the presets were changed.
        fault: what is wrong with the file; empty if its presets are served.
    """

    def __init__(self, serving: Serving, file: Path, pause: float = _LOOK) -> None:
        self._serving = serving
        self._file = file
        self._pause = pause
        self._turn = asyncio.Lock()
        self._seen = _stamps(self._files)
        self.swaps = 0
        self.fault = ""

    @property
    def _files(self) -> tuple[Path, ...]:
        return self._serving.settings.files

    @contextlib.asynccontextmanager
    async def watching(self, *, by_signal: bool) -> AsyncIterator[None]:
        """While the block lasts, follow the files.

        Args:
            by_signal: SIGHUP reads them at once.
        """
        loop, task = asyncio.get_running_loop(), asyncio.create_task(self._watch())
        if by_signal:
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        try:
            yield
        finally:
            if by_signal:
                loop.remove_signal_handler(signal.SIGHUP)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def reload(self) -> None:
        """Read the settings; what is wrong with them is logged, and the presets stay."""
        async with self._turn:
            self._seen = _stamps(self._files)  # before it reads, so that a save in between counts as a change
            try:
                # It imports plugins and compiles schemas, which would block all clients.
                read = await asyncio.to_thread(read_serve_settings, self._file)
                check_preset_budgets(read.presets.values(), self._serving.settings.keys)
            except Exception as error:  # a plugin's, too: the server continues with what it has
                plain = isinstance(error, ConcertinoError)
                self.fault = str(error) if plain else f"{self._file}: {type(error).__name__}: {error}"
                logger.error("the presets stay as they are: %s", self.fault)
                return
            self.fault = ""
            self._take(read)

    def _take(self, read: ServeSettings) -> None:
        now = self._serving.settings
        if fixed := [name for name in _FIXED if getattr(read, name) != getattr(now, name)]:
            logger.warning("%s: %s changed; that takes effect at the next start", self._file, ", ".join(fixed))
        if read.presets != now.presets:
            self.swaps += 1
            logger.info("%s: serves %s from now on", self._file, ", ".join(read.presets))
        self._serving.hub.swap(read)
        if read.files != now.files:
            self._seen = _stamps(self._files)

    def _hang_up(self) -> None:
        self._told = asyncio.create_task(self.reload())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            if _stamps(self._files) != self._seen:
                await self.reload()


def _stamps(files: Iterable[Path]) -> _Stamps:
    return tuple(_stamp(file) for file in files)


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    # With the inode, since many editors replace a file, possibly at equal time and size.
    return status.st_mtime_ns, status.st_size, status.st_ino
