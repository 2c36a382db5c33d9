"""A session: a conversation that is kept in a folder of traces, and continued from any process.

    session = ct.Session("ada", "runs", budget=ct.Budget(usd=1))
    await leader.run("How warm is it in Bergen?", pool=pool, history=session)
    await leader.run("And tomorrow?", pool=pool, history=session)           # hours later, in another process
    session.fork("ada-2")

Its file, `<folder>/<name>.session.jsonl`, is a journal with one record per turn: the run, its question, what its calls
returned, its answer and its usage. Each run's trace lies beside it. Pool and strategy may change from turn to turn.

Invariants: one run at a time works on a session, for it holds the journal open; a turn is added with one write when its
run has ended, so a killed process loses no finished turn, and a run that can still be resumed adds its turn when that
has been done.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from concertino.core.budget import Budget
from concertino.core.errors import BudgetError, ConcertinoError, TraceError, UsageError
from concertino.core.model import Message
from concertino.core.private_files import make_private_folder
from concertino.core.usage import NOTHING, Usage
from concertino.traces import TraceStore
from concertino.traces.journal import Journal
from concertino.traces.journal_errors import JournalExists, JournalLocked
from concertino.traces.journal_reader import read_journal
from concertino.traces.record_shape import Shape
from concertino.traces.trace import VERSION

from .history import observed_text, quoted_question, said_by

if TYPE_CHECKING:
    from concertino.core.attachment import Attachment

    from .run import Run

SUFFIX = ".session.jsonl"
"""How session files end."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,99}")
_ADDED_UP = ("calls", "units", "usd", "tokens")
_POLL = 0.05
"""Seconds between two looks at a session that another run works on."""


class SessionBusy(ConcertinoError):
    """Another run works on the session."""


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """One turn of a session.

    Attributes:
        run_id: of its run, whose trace lies beside the session.
        question: of the user.
        observed: what its calls returned, as a later turn reads it.
        answer: `None` where the run ended without one.
        stop: why the run ended.
        usage: of the run.
        at: seconds since 1970 at which it was added.
    """

    run_id: str
    question: str
    observed: str
    answer: str | None
    stop: str
    usage: Usage
    at: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {name: getattr(self, name) for name in ("run_id", "question", "observed", "answer", "stop", "at")}
        return {**data, "usage": self.usage.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SessionTurn:
        """The inverse of `to_json`; a record of the journal also has its number, and a later version may add more."""
        known = {field.name: data[field.name] for field in fields(cls)}
        return cls(**{**known, "usage": Usage.from_json(data["usage"])})


_USAGE = Usage(1, 0.5, 0.5, 1, 1, 1, 0.5, 1, 1, 1, 1)
_SAMPLES = [
    SessionTurn("id", "text", "text", "text", "word", _USAGE, 0.5),
    SessionTurn("id", "text", "text", None, "word", NOTHING, 0.5),
]
_TURN = Shape([turn.to_json() for turn in _SAMPLES], "turn")


def _turn(record: dict[str, Any]) -> SessionTurn:
    """The turn in a record of a journal, which may come from a stranger. ValueError says what is wrong with it."""
    if found := _TURN.fault(record):
        raise ValueError(found)
    # It becomes the name of a file, which is read, and may be deleted.
    if set(record["run_id"]) & set("/\\\0"):
        raise ValueError(f"the run id {record['run_id'][:80]!r} leads out of the folder")
    return SessionTurn.from_json(record)


class Session:
    """A conversation by name, in a folder of traces. Its file is made when the first run begins.

    Args:
        name: letters, digits, `_`, `.`, `@` or `-`.
        folder: of the traces; by default that of the command line.
        busy: what a run does while another one works on the session: `wait` for it, or `refuse`.
        budget: what all turns together may use in calls, units, $ and tokens: each run gets what is left. Its other
            limits hold for each run.

    Raises:
        UsageError: the name cannot be a file's.
    """

    def __init__(
        self,
        name: str,
        folder: str | Path | TraceStore | None = None,
        *,
        busy: Literal["wait", "refuse"] = "wait",
        budget: Budget | None = None,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(f"session name {name!r}: expected letters, digits, '_', '.', '@' or '-'")
        if busy not in ("wait", "refuse"):
            raise UsageError(f"busy={busy!r}: expected 'wait' or 'refuse'")
        self.name = name
        self.store = folder if isinstance(folder, TraceStore) else TraceStore(folder)
        self.path = self.store.folder / f"{name}{SUFFIX}"
        self.busy = busy
        self.budget = budget

    def __repr__(self) -> str:
        return f"Session({self.name!r}, {str(self.store.folder)!r})"

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def turns(self) -> list[SessionTurn]:
        """All turns, the oldest first.

        Raises:
            TraceError: the file is damaged; says where.
        """
        if not self.path.is_file():
            return []
        file = read_journal(self.path)
        if file.damage is not None and not file.damage.torn:
            raise TraceError(f"{self.path}: {file.damage}")
        try:
            return [_turn(record) for record in file.records]
        except ValueError as error:
            raise TraceError(f"{self.path}: it holds something that is not a turn of a session ({error})") from None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as a run is told of it."""
        pairs = [
            (
                Message("user", quoted_question(turn.question) + turn.observed),
                Message("assistant", said_by(turn.answer, turn.stop)),
            )
            for turn in self.turns
        ]
        return tuple(message for pair in pairs for message in pair)

    @property
    def usage(self) -> Usage:
        """Of all turns together."""
        total = NOTHING
        for turn in self.turns:
            total = total.plus(turn.usage)
        return total

    def attachments(self) -> list[Attachment]:
        """Images, audio and files of its runs, as far as their traces are there."""
        found = []
        for turn in self.turns:
            if "[" in turn.question + turn.observed and self.store.path_for(turn.run_id).is_file():
                found += self.store.load(turn.run_id).attachments()
        return list(dict.fromkeys(found))

    @classmethod
    def all(cls, folder: str | Path | None = None) -> list[Session]:
        """The sessions of a folder, the one with the newest turn first."""
        store = TraceStore(folder)
        paths = sorted(store.folder.glob(f"*{SUFFIX}"), key=lambda path: -path.stat().st_mtime)
        return [cls(path.name.removesuffix(SUFFIX), store) for path in paths]

    # -- changing --------------------------------------------------------------------------------------------------

    def fork(self, name: str) -> Session:
        """Another session with the same turns so far; the two continue independently.

        Raises:
            UsageError: a session of that name exists.
        """
        twin = Session(name, self.store, busy=self.busy, budget=self.budget)
        turns = self.turns
        if twin.path.exists():
            raise UsageError(f"a session {name!r} exists in {self.store.folder}; choose another name")
        with SessionHold(twin) as hold:
            for turn in turns:
                hold.write(turn)
        return twin

    def delete(self, *, traces: bool = False) -> None:
        """Remove it; with `traces`, the traces of its runs too, unless another session of the folder holds them.

        Raises:
            SessionBusy: a run works on it.
        """
        with SessionHold(self):
            turns = self.turns
            self.path.unlink(missing_ok=True)
        if traces:
            others = {turn.run_id for session in Session.all(self.store.folder) for turn in session.turns}
            for turn in turns:
                if turn.run_id not in others:
                    self.store.delete(turn.run_id)

    def left(self, budget: Budget) -> Budget:
        """What a run may use: its own budget, and no more than is left of the session's.

        Raises:
            BudgetError: nothing is left.
        """
        if self.budget is None:
            return budget
        used = self.usage
        changes: dict[str, Any] = {}
        for field in fields(Budget):
            name, limit, own = field.name, getattr(self.budget, field.name), getattr(budget, field.name)
            if limit is None:
                continue
            rest = limit - (getattr(used, name) if name in _ADDED_UP else 0)
            if rest <= 0:
                raise BudgetError(f"session {self.name!r}: its budget of {limit:g} {name} is used up")
            changes[name] = rest if own is None else min(own, rest)
        return budget.with_(**changes)

    async def hold(self) -> SessionHold:
        """Work on it alone, as soon as no other run does.

        Raises:
            SessionBusy: another run works on it, and `busy` is `refuse`.
        """
        while True:
            try:
                return SessionHold(self)
            except SessionBusy:
                if self.busy == "refuse":
                    raise
            await asyncio.sleep(_POLL)


class SessionHold:
    """The right to work on a session, until `release` or the end of the process.

    Raises:
        SessionBusy: another run has it.
        TraceError: the file cannot be written, or is no session.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        path = session.path
        make_private_folder(path.parent)
        try:
            try:
                self._journal = Journal.create(path, {"t": "header", "v": VERSION, "format": "concertino-session"})
            except JournalExists:
                self._journal, _ = Journal.resume(path)
        except JournalLocked as error:
            raise SessionBusy(
                f"session {session.name!r}: another run works on it; wait for it, or fork the session"
            ) from error

    def add(self, run: Run) -> None:
        """Add the turn of a run that has ended. Twice the same run is added once.

        Raises:
            TraceError: the file cannot be written.
        """
        if any(turn.run_id == run.id for turn in self.session.turns):
            return
        at = round(time.time(), 3)
        self.write(SessionTurn(run.id, run.question, observed_text(run), run.answer, run.stop, run.usage, at))

    def write(self, turn: SessionTurn) -> None:
        """Add a turn."""
        self._journal.append(turn.to_json())

    def release(self) -> None:
        """Give it back."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
