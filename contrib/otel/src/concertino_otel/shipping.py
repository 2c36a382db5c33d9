"""The shipper: one thread of the process that sends the spans of all its runs, while they go on and after they end.

A run tells it one thing: the path of its trace. So a run pays for a list entry, and everything else is read from the
file in the thread. A receiver that is away is asked again after a while; what it has not taken when the process ends
is sent by the next process that ships from the same folder, or by `concertino traces export RUN --otlp URL`.

Invariant: nothing here ever reaches a run: what goes wrong is told in the log, once for each trace.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from pathlib import Path

from concertino.core.errors import ConcertinoError

from .exporting import TraceExport
from .options import Options
from .positions import waiting
from .sending import Away, Send, sender

logger = logging.getLogger("concertino.otel")

POLL = 2.0
"""Seconds between looks at the traces of runs that go on. A request costs more than many spans, so few are made."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds until a receiver that is away is asked again, doubled each time."""
_BLIND = 2
"""Looks at a file's size alone, between two at whether its run still lives."""
_GRACE = 5.0
"""Seconds in which a trace that was told may not be there yet, or not be locked yet."""


class Shipper:
    """Sends the spans of traces to one receiver.

    Args:
        send: what sends; by default over HTTP.
    """

    def __init__(self, options: Options, *, send: Send | None = None) -> None:
        self.options = options
        self._send = send or sender(options)  # one for all runs: making it reads the certificates of the machine
        self._mutex = threading.Lock()
        self._told: list[Path] = []
        self._exports: dict[Path, tuple[TraceExport, float]] = {}
        self._folders: set[Path] = set()
        self._looked: dict[Path, tuple[int, int]] = {}
        self._wake = threading.Event()
        self._ending = False
        self._away_until, self._wait = 0.0, FIRST_WAIT
        self._thread = threading.Thread(target=self._work, name="concertino-otel", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def ship(self, trace: Path) -> None:
        """Send the spans of a trace from now on, until its run is over."""
        with self._mutex:
            self._told.append(trace.absolute())

    def close(self, seconds: float | None = None) -> bool:
        """Send what there is, and stop. Gives whether nothing is left.

        Args:
            seconds: how long it may take; by default the `exit_seconds` of the options.
        """
        atexit.unregister(self.close)
        self._ending = True
        self._wake.set()
        self._thread.join(self.options.exit_seconds if seconds is None else seconds)
        left = len(self._exports) + len(self._told)
        if left:
            logger.warning(
                "%s has not taken the spans of %d runs yet; the next process that ships from the folder sends them",
                self.options.receiver,
                left,
            )
        return not left

    # -- the thread --------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            ending = self._ending
            self._listen()
            if time.monotonic() >= self._away_until or ending:
                self._round(ending)
            if ending and (not self._exports or time.monotonic() < self._away_until):
                return
            self._wake.wait(POLL)

    def _listen(self) -> None:
        """Begin with the traces that were told meanwhile, and with those that a process before left behind."""
        with self._mutex:
            told, self._told = self._told, []
        now = time.monotonic()
        for path in told:
            if path not in self._exports:
                self._exports[path] = (TraceExport(path, self.options, send=self._send), now)
            if path.parent not in self._folders:
                self._folders.add(path.parent)
                for other in waiting(path.parent, self.options.receiver):
                    self._exports.setdefault(other, (TraceExport(other, self.options, send=self._send), now))

    def _round(self, ending: bool) -> None:
        for path, (export, since) in list(self._exports.items()):
            if not path.exists() and time.monotonic() - since < _GRACE and not ending:
                continue  # its run is about to begin
            try:
                if not export.run_id:
                    export.promise()
                if not (ending or self._has_news(path, export)):
                    continue
                export.send_news()
            except Away as error:
                self._away(error)
                return
            except (ConcertinoError, OSError) as error:
                logger.warning("the spans of %s are not sent: %s", path.name, error)
                self._forget(path)
                continue
            self._wait = FIRST_WAIT
            settled = export.over or (not export.going and (ending or time.monotonic() - since > _GRACE))
            if settled:
                self._forget(path)

    def _forget(self, path: Path) -> None:
        del self._exports[path]
        self._looked.pop(path, None)

    def _has_news(self, path: Path, export: TraceExport) -> bool:
        """Whether to look into a trace: it has grown, or it is time to see whether its run still lives."""
        looked, size = self._looked.get(path, (0, -1))
        now = path.stat().st_size
        if export.going and not export.holds and now == size and looked < _BLIND:
            self._looked[path] = (looked + 1, size)
            return False
        self._looked[path] = (0, now)
        return True

    def _away(self, error: Away) -> None:
        if self._wait == FIRST_WAIT:
            logger.warning("%s; its spans wait in the traces", error)
        self._away_until = time.monotonic() + max(self._wait, error.after)
        self._wait = min(2 * self._wait, LONGEST_WAIT)


_shippers: list[Shipper] = []
_mutex = threading.Lock()


def shipper_for(options: Options) -> Shipper:
    """The shipper of this process for a receiver."""
    with _mutex:
        known = next((each for each in _shippers if each.options == options), None)
        if known is None:
            known = Shipper(options)
            _shippers.append(known)
        return known
