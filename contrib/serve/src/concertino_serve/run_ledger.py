"""What all workers of a server must agree on: who holds what, what was used, and which run answers which request.

    with ledger.turn():                                   # nobody else reads or writes meanwhile
        if ledger.running("ada") < 4:
            number = ledger.hold(run_id, "ada", usd=0.5)
    ledger.release(number)

One process keeps it in memory, several keep it in a file beside the traces. It is no record of anything: it lasts as
long as the server, and the next start makes it from the traces.

Invariants: a turn takes effect whole or not at all, also where its worker is killed in the middle. What a dead worker
held stays held until another worker takes its runs over.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from concertino.core.private_files import open_private

_WAIT = 30.0
"""Seconds to wait for a turn; one takes less than a millisecond."""
_MOST_KNOWN = 10_000
"""Requests whose runs are known by heart."""
_TABLES = """
CREATE TABLE IF NOT EXISTS holds (number INTEGER PRIMARY KEY, run TEXT, owner TEXT, usd REAL, paid REAL, worker TEXT);
CREATE INDEX IF NOT EXISTS holds_of_run ON holds (run);
CREATE TABLE IF NOT EXISTS used (owner TEXT, day INTEGER, usd REAL, PRIMARY KEY (owner, day));
CREATE TABLE IF NOT EXISTS begun (owner TEXT, at REAL);
CREATE TABLE IF NOT EXISTS asked (place INTEGER PRIMARY KEY, digest TEXT UNIQUE, run TEXT);
CREATE TABLE IF NOT EXISTS busy (name TEXT PRIMARY KEY, worker TEXT);
CREATE TABLE IF NOT EXISTS readers (run TEXT, worker TEXT);
CREATE TABLE IF NOT EXISTS counts (worker TEXT PRIMARY KEY, counts TEXT);
"""


class Orphan(NamedTuple):
    """What a dead worker held.

    Attributes:
        paid: $ of the run that are counted as used.
    """

    owner: str
    usd: float | None
    paid: float


class RunLedger:
    """The ledger of a server.

    Args:
        file: that its workers share; None for a server of one process.
        worker: the name of this one, which no other worker has or had.
    """

    def __init__(self, file: Path | None = None, worker: str = "alone") -> None:
        self.worker = worker
        self.shared = file is not None
        if file is not None:
            os.close(open_private(file, os.O_RDWR | os.O_CREAT))
        # Without transactions that begin by themselves: a turn says where it begins.
        self._db = sqlite3.connect(file or ":memory:", timeout=_WAIT, isolation_level=None, check_same_thread=False)
        if file is not None:
            self._db.execute("PRAGMA journal_mode = WAL")  # which a kill does not damage
        weakref.finalize(self, self._db.close)
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.executescript(_TABLES)
        self._depth = 0

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """While the block lasts, no other worker reads or writes. Blocks may be nested; they must not await."""
        if self._depth == 0:
            self._db.execute("BEGIN IMMEDIATE")
        self._depth += 1
        try:
            yield
        except BaseException:
            if self._depth == 1:
                self._db.execute("ROLLBACK")
            raise
        else:
            if self._depth == 1:
                self._db.execute("COMMIT")
        finally:
            self._depth -= 1

    def _one(self, query: str, *values: Any) -> Any:
        """The first value of the first row; None without rows."""
        row = self._db.execute(query, values).fetchone()
        return None if row is None else row[0]

    # -- places and money ------------------------------------------------------------------------------------------

    def hold(self, run: str, owner: str, usd: float | None, paid: float = 0.0) -> int:
        """Hold a place for a run.

        Args:
            usd: reserved of the limit of its owner; None without a limit.
            paid: $ of the run that are counted as used.

        Returns:
            The number by which it is released.
        """
        query = "INSERT INTO holds (run, owner, usd, paid, worker) VALUES (?, ?, ?, ?, ?)"
        number = self._db.execute(query, (run, owner, usd, paid, self.worker)).lastrowid
        assert number is not None
        return number

    def release(self, number: int) -> bool:
        """Give a place back; False if that was done before."""
        return self._db.execute("DELETE FROM holds WHERE number = ?", (number,)).rowcount > 0

    def running(self, owner: str | None = None) -> int:
        """Places that are held: of an owner, or all."""
        if owner is None:
            return int(self._one("SELECT count(*) FROM holds"))
        return int(self._one("SELECT count(*) FROM holds WHERE owner = ?", owner))

    def reserved(self, owner: str) -> float:
        """$ that the runs of an owner may still use."""
        return float(self._one("SELECT total(usd) FROM holds WHERE owner = ?", owner))

    def used(self, owner: str, day: int) -> float:
        """$ that an owner has used on a day."""
        return float(self._one("SELECT total(usd) FROM used WHERE owner = ? AND day = ?", owner, day))

    def charge(self, owner: str, day: int, usd: float) -> None:
        """Count $ as used."""
        self._db.execute(
            "INSERT INTO used VALUES (?, ?, ?) ON CONFLICT (owner, day) DO UPDATE SET usd = usd + excluded.usd",
            (owner, day, usd),
        )

    def note_begin(self, owner: str, at: float) -> None:
        """Count a run that begins, for the rate of its owner."""
        self._db.execute("INSERT INTO begun VALUES (?, ?)", (owner, at))

    def begun_since(self, owner: str, since: float) -> list[float]:
        """When the runs of an owner began, the oldest first; earlier ones are forgotten."""
        self._db.execute("DELETE FROM begun WHERE owner = ? AND at <= ?", (owner, since))
        return [at for (at,) in self._db.execute("SELECT at FROM begun WHERE owner = ? ORDER BY at", (owner,))]

    # -- runs of others --------------------------------------------------------------------------------------------

    def is_held(self, run: str) -> bool:
        """Whether a run is under way in a worker, or is to be taken over from one that has died."""
        return bool(self._one("SELECT count(*) FROM holds WHERE run = ?", run))

    def is_held_elsewhere(self, run: str) -> bool:
        """Whether a run is under way in another worker that lives."""
        return bool(self._one("SELECT count(*) FROM holds WHERE run = ? AND worker != ?", run, self.worker))

    def abandon(self, worker: str) -> None:
        """Note that a worker has died: what it held may be taken over, what it was alone with is free."""
        with self.turn():
            self._db.execute("UPDATE holds SET worker = NULL WHERE worker = ?", (worker,))
            self._db.execute("DELETE FROM busy WHERE worker = ?", (worker,))
            self._db.execute("DELETE FROM readers WHERE worker = ?", (worker,))

    def orphans(self) -> list[str]:
        """The runs of dead workers."""
        return [run for (run,) in self._db.execute("SELECT DISTINCT run FROM holds WHERE worker IS NULL")]

    def inherit(self, run: str) -> list[Orphan]:
        """What a dead worker held for a run; it holds that no more."""
        query = "DELETE FROM holds WHERE run = ? AND worker IS NULL RETURNING owner, usd, paid"
        return [Orphan(*row) for row in self._db.execute(query, (run,)).fetchall()]

    def take(self, name: str) -> bool:
        """Be the only worker that has a name; False if another one has it. The names of a dead worker are free."""
        query = "INSERT OR IGNORE INTO busy VALUES (?, ?)"
        return self._db.execute(query, (name, self.worker)).rowcount > 0

    def give_back(self, name: str) -> None:
        """Have a name no more."""
        self._db.execute("DELETE FROM busy WHERE name = ? AND worker = ?", (name, self.worker))

    @contextlib.contextmanager
    def reading(self, run: str) -> Iterator[None]:
        """While the block lasts, a client of this worker reads a run of another one."""
        number = self._db.execute("INSERT INTO readers VALUES (?, ?)", (run, self.worker)).lastrowid
        try:
            yield
        finally:
            self._db.execute("DELETE FROM readers WHERE rowid = ?", (number,))

    def is_read(self, run: str) -> bool:
        """Whether a client of a worker reads a run that is not its own."""
        return bool(self._one("SELECT count(*) FROM readers WHERE run = ?", run))

    # -- which run answers which request ---------------------------------------------------------------------------

    def know(self, digest: str, run: str) -> None:
        """Know the newest run of a request. The oldest of many are forgotten."""
        place = self._db.execute("INSERT OR REPLACE INTO asked (digest, run) VALUES (?, ?)", (digest, run)).lastrowid
        assert place is not None
        if place > _MOST_KNOWN:
            self._db.execute("DELETE FROM asked WHERE place <= ?", (place - _MOST_KNOWN,))

    def run_of(self, digest: str) -> str | None:
        """The newest run of a request."""
        found: str | None = self._one("SELECT run FROM asked WHERE digest = ?", digest)
        return found

    def forget(self, digest: str) -> None:
        """Know the run of a request no more."""
        self._db.execute("DELETE FROM asked WHERE digest = ?", (digest,))

    @property
    def has_forgotten(self) -> bool:
        """Whether there may be requests that are known no more."""
        return (self._one("SELECT max(place) FROM asked") or 0) > _MOST_KNOWN

    # -- counts ----------------------------------------------------------------------------------------------------

    def publish(self, counts: str) -> None:
        """Let the other workers read the counts of this one."""
        self._db.execute("INSERT OR REPLACE INTO counts VALUES (?, ?)", (self.worker, counts))

    def published(self) -> list[str]:
        """The counts of all other workers, also of those that have ended."""
        return [text for (text,) in self._db.execute("SELECT counts FROM counts WHERE worker != ?", (self.worker,))]
