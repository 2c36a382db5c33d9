"""The folder of a server's runs: one server at a time has it.

Two servers on one folder would not know of each other's requests, so a repeated one would be paid twice, and each would
allow a key all that it may use. So the second one is refused. The workers of one server share a ledger instead.

Invariant: the kernel holds the lock, on the folder itself, and frees it when the server, with all workers that have
inherited the lock, has ended or was killed.
"""

from __future__ import annotations

import os
from pathlib import Path

from concertino.core.errors import UsageError
from concertino.core.private_files import make_private_folder
from concertino.traces.journal_errors import JournalLocked
from concertino.traces.journal_lock import WriterLock


class ServedFolder:
    """The right to serve the runs of a folder, from construction to `release` or to the end of the process.

    Attributes:
        path: of the folder.

    Raises:
        UsageError: another server has it.
        TraceError: the file system offers no locks.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder
        make_private_folder(folder)
        self._fd = os.open(folder, os.O_RDONLY)
        try:
            self._lock = WriterLock(folder, self._fd)
        except JournalLocked as error:
            os.close(self._fd)
            who = f"process {error.pid}" if error.pid else "another server"
            raise UsageError(
                f"{folder}: {who} serves the runs of this folder already; stop it, or give this server another folder: "
                'traces = "runs-2"'
            ) from None
        except BaseException:
            os.close(self._fd)
            raise

    def fileno(self) -> int:
        """What a child process inherits to have the right too."""
        return self._fd

    def release(self) -> None:
        """Give the right back."""
        self._lock.release()
        os.close(self._fd)
