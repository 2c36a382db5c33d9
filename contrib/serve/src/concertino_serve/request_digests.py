"""The runs by what was asked: the newest in the ledger, the others by their names in the folder.

Invariant: of two workers that find no run of a request and begin one, only one may.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from concertino.core.known_secrets import read_secret
from concertino.traces.sealing import VARIABLE
from concertino.traces.sink import SUFFIX

from .run_ledger import RunLedger

DIGITS = 16
"""Hexadecimal digits of a digest at the end of the id of its run."""


class Digests:
    """Finds the run of a request.

    Args:
        folder: of the traces.
    """

    def __init__(self, ledger: RunLedger, folder: Path) -> None:
        self._ledger = ledger
        self._folder = folder

    def add(self, run_id: str) -> bool:
        """Know a run; always True."""
        self._ledger.know(run_id[-DIGITS:], run_id)
        return True

    def claim(self, run_id: str, instead_of: str | None) -> bool:
        """Know a run, unless the request has another one than it had.

        Args:
            instead_of: the run that it had.
        """
        with self._ledger.turn():
            if self._ledger.run_of(run_id[-DIGITS:]) not in (None, instead_of):
                return False
            return self.add(run_id)

    def forget(self, run_id: str) -> None:
        """Know a run no more."""
        self._ledger.forget(run_id[-DIGITS:])

    def find(self, digest: str) -> str | None:
        """The id of the newest run of a digest."""
        end = digest[:DIGITS]
        known = self._ledger.run_of(end)
        if known is not None or not self._ledger.has_forgotten:
            return known
        names = sorted(path.name for path in self._folder.glob(f"*-{end}{SUFFIX}"))
        return names[-1].removesuffix(SUFFIX) if names else None


def digest_of(*parts: str | bytes) -> str:
    """What tells whether two requests are the same.

    Its beginning is part of the name of the trace. Where traces are sealed it is made with the key, so that nobody can
    guess a request and find out that it was made.
    """
    found = hashlib.sha256()
    for part in (read_secret(VARIABLE), *parts):
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "big") + data)
    return found.hexdigest()
