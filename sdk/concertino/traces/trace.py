"""A trace: the record of a run, in memory or read from a file; the same records either way.

A trace says what was asked, what the orchestrator wrote, what was called with which arguments and with which result,
in the order in which it happened. From it a run is shown, resumed without repeating a finished call, replayed without
any model, and trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concertino.core.attachment import Attachment
from concertino.core.errors import TraceError
from concertino.core.events import Event
from concertino.core.model import Reply
from concertino.core.observation import Observation
from concertino.core.private_files import make_private_folder

from .facts import FACTS_WITHOUT, TraceFacts
from .records import StoredRecords, TraceReading, nothing_yet

_SHOWN = 8_000
"""Characters of a result that a drawing is given."""
VERSION = 1
"""Version of the records; a file of a newer one is refused."""


@dataclass(frozen=True)
class Summary:
    """One line about a trace."""

    run_id: str
    path: str
    question: str
    answer: str | None
    stop: str
    rounds: int
    calls: int
    failed: int
    usd: float
    units: float
    seconds: float
    damage: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return dict(self.__dict__)


class Trace:
    """The records of one run.

    Attributes:
        records: plain JSON data, one per event; `t` names the kind. Those of a large file are read from it when they
            are asked for.
        path: the file it came from or was written to, if any.
        damage: what was wrong with the file, `""` if nothing.
    """

    def __init__(self, records: Sequence[dict[str, Any]], path: Path | None = None, damage: str = "") -> None:
        if not records or records[0].get("t") != "run" or not {"run", "question"} <= records[0].keys():
            raise TraceError(
                f"{path or 'these records'}: a trace begins with a 'run' record that names run and question; this one "
                "does not, so it was written by something else"
            )
        self.records: Sequence[dict[str, Any]] = records if isinstance(records, StoredRecords) else list(records)
        self.path = path
        self.damage = damage
        self._first = records[0]
        # Of a file alone: records in memory may change.
        self._known: TraceFacts | None = None

    @classmethod
    def of_events(cls, events: Sequence[Event], path: Path | None = None) -> Trace:
        """The trace of a run in this process."""
        return cls([event.to_json() for event in events], path)

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace file, also a damaged one or one of an active run.

        It is read once. Of a large one only places and facts are held, so keep the file as long as the trace.

        Raises:
            TraceError: no such file, no trace, or written by a newer version; says what to do.
        """
        return cls.read(TraceReading(path, without=FACTS_WITHOUT, keep=0))

    @classmethod
    def read(cls, reading: TraceReading, *also: Callable[[dict[str, Any]], object]) -> Trace:
        """The trace of a reading, to whose records others listen too.

        Raises:
            TraceError: as `load`.
        """
        facts = TraceFacts()
        for record in cls.checked(reading):
            facts.apply(record)
            for listen in also:
                listen(record)
        damage = reading.damage
        trace = cls(reading.records(), reading.path, str(damage.reason) if damage else "")
        if not reading.whole:
            trace._known = facts
        return trace

    @classmethod
    def checked(cls, reading: TraceReading) -> Iterator[dict[str, Any]]:
        """The records of a reading, if they are those of a trace.

        Raises:
            TraceError: as `load`.
        """
        for record in reading:
            if not reading.place:
                cls([record], reading.path)
            yield record
        if reading.place < 0:
            raise nothing_yet(reading.path)

    def save(self, path: str | Path) -> Path:
        """Write the records as a trace file.

        Raises:
            TraceError: the file exists, or cannot be written.
        """
        from .blobs import pack
        from .journal import Journal

        target = Path(path)
        make_private_folder(target.parent)
        with Journal.create(target, header(self.run_id)) as journal:
            for record in self.records:
                # Records that came from a file carry its numbers, and the journal refuses a record that brings one.
                journal.append(pack({key: value for key, value in record.items() if key != "n"}, journal))
        return target

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def facts(self) -> TraceFacts:
        """What is known of the run at its end."""
        return self._known or TraceFacts.of(self.records)

    def of_kind(self, kind: str) -> Iterator[dict[str, Any]]:
        """Records of one kind, in order."""
        return (record for record in self.records if record["t"] == kind)

    @property
    def run_id(self) -> str:
        """Id of the run."""
        return str(self._first["run"])

    @property
    def question(self) -> str:
        """The question."""
        return str(self._first["question"])

    @property
    def setup(self) -> dict[str, Any]:
        """Strategy, pool, budget and models of the run."""
        return dict(self._first.get("setup", {}))

    @property
    def finished(self) -> bool:
        """Whether the run came to an end."""
        return self.end is not None

    @property
    def end(self) -> dict[str, Any] | None:
        """The last record, if the run came to an end."""
        last = self.records[-1] if self._known is None else dict(self._known.last)
        return last if last["t"] == "end" else None

    @property
    def began(self) -> float:
        """When the run began, in seconds since 1970."""
        return float(self._first["at"])

    def replies(self) -> list[Reply]:
        """What the orchestrator (and summariser) wrote."""
        return [Reply.from_json(record["reply"]) for record in self.of_kind("reply")]

    def observations(self) -> list[Observation]:
        """All observations, in the order of finishing, those inside agents too."""
        return [Observation.from_json(record) for record in self.of_kind("result")]

    def in_doubt(self) -> list[str]:
        """Ids of calls that were started and whose end is not known."""
        return self.facts.in_doubt()

    def attachments(self) -> list[Attachment]:
        """Images, audio and files that the run was given or that its calls returned, with their bytes.

        Raises:
            BlobError: a side file is missing or damaged.
        """
        from .blobs import BlobStore

        found: dict[str, Attachment] = {}
        for record in self.facts.attached:
            for item in record["attachments"]:
                data = b""
                if not item.get("url") and self.path is not None:
                    data = BlobStore(self.path).read({"$blob": item["sha256"], "bytes": item.get("bytes")})
                found[item["sha256"]] = Attachment.from_json(item, data)
        return list(found.values())

    def pending(self) -> dict[str, dict[str, Any]]:
        """Calls that wait for a person's decision: their `approval` records by id."""
        return self.facts.pending()

    def seconds(self) -> float:
        """Seconds from the start of the run to the last thing on record."""
        return float(self.facts.seconds)

    def summary(self) -> Summary:
        """One line about it."""
        facts = self.facts
        calls, failed = facts.counts()
        end = facts.last if facts.finished else {}
        usage = end.get("usage", {})
        return Summary(
            run_id=self.run_id,
            path=str(self.path or ""),
            question=self.question,
            answer=end.get("answer"),
            stop=end.get("stop", "unfinished"),
            rounds=facts.plans,
            calls=calls,
            failed=failed,
            usd=usage.get("usd", 0.0),
            units=usage.get("units", 0.0),
            seconds=round(self.seconds(), 3),
            damage=self.damage,
        )

    def export(self) -> dict[str, Any]:
        """One JSON object with everything, for other tools."""
        return {"version": VERSION, "summary": self.summary().to_json(), "records": list(self.records)}

    # -- showing ---------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """For notebooks: question, answer, why it ended, what it used, and its calls."""
        from .board import board_of
        from .run_html import run_html

        return run_html(board_of(self.records), self.path)

    def show(self) -> None:
        """Draw the calls by rounds, with what each waits for: below the cell in a notebook, as text elsewhere."""
        from .board import Board
        from .run_graph import RunGraph, plans_of

        # Of each result it looks at the begin alone.
        board = Board(lambda _, content: content[:_SHOWN] if isinstance(content, str) else content)
        for record in self.records:
            board.apply(record)
        RunGraph(board, plans_of(self.records)).show()

    def __len__(self) -> int:
        return len(self.records)

    def __repr__(self) -> str:
        return f"<Trace {self.run_id}: {len(self.records)} records{', unfinished' if not self.finished else ''}>"


def header(run_id: str) -> dict[str, Any]:
    """The first line of a trace file."""
    return {"t": "header", "v": VERSION, "format": "concertino-trace", "run": run_id}
