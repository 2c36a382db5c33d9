"""The runs of a folder, each as one row; what has not changed since is not read again.

Invariant: a file that cannot be read is a row that says why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from concertino.core.errors import TraceError
from concertino.traces import TraceStore
from concertino.traces.overview import Overview
from concertino.traces.sink import SUFFIX

from .shown_texts import ShownTexts, fault_of


class RunList:
    """The runs of a store, newest first; safe to use from several threads."""

    def __init__(self, store: TraceStore) -> None:
        self.store = store
        self._texts = ShownTexts()
        self._known: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def rows(self, most: int, shows: Callable[[Path], bool]) -> list[dict[str, Any]]:
        """The newest so many of those that are shown."""
        with self._lock:
            paths = self.store.paths()
            self._known = {path: self._known[path] for path in paths if path in self._known}
            return [self._row(path) for path in islice(filter(shows, paths), most)]

    def _row(self, path: Path) -> dict[str, Any]:
        try:
            stat = path.stat()
        except OSError:
            return {"id": path.name.removesuffix(SUFFIX), "error": "the file has gone"}
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            known = self._known[path] = (stamp, self._made(path))
        return known[1]

    def _made(self, path: Path) -> dict[str, Any]:
        line = self._texts.line
        name = path.name.removesuffix(SUFFIX)
        try:
            found = Overview.of(path)
        except TraceError as error:
            return {"id": name, "error": line(fault_of(error, path))}
        told = found.summary
        numbers = {key: getattr(told, key) for key in ("rounds", "calls", "failed", "usd", "units", "seconds")}
        words = {"question": line(told.question), "answer": line(told.answer or ""), "stop": line(told.stop)}
        waits = len(found.pending) if found.end is None or told.stop == "suspended" else 0
        return {"id": name, "began": found.began, "damage": line(told.damage), "waits": waits, **words, **numbers}
