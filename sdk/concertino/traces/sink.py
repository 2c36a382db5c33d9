"""From events to a journal file: the sink that a run writes to.

Contents above 64 KiB go to side files; the record names them. What an event says about itself (`to_json`) is exactly
what stands in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.errors import UsageError
from concertino.core.events import Attached, Event

from .blobs import BLOB_LIMIT

if TYPE_CHECKING:
    from .journal import Journal

SUFFIX = ".trace.jsonl"
"""How trace files end."""

Durability = Literal["process", "power"]
"""What a finished call survives: the death of the process, or a power cut."""


class JournalSink:
    """Writes events to a journal: a new one (`create`), or one that `Journal.resume` opened."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    @classmethod
    def create(cls, path: Path, header: Mapping[str, Any], durability: Durability = "process") -> JournalSink:
        """Begin a trace file.

        Raises:
            UsageError: the folder cannot be made.
            JournalError: the file exists already, or cannot be written.
        """
        # Imported here, so that a run without a trace does not pay for the journal.
        from .journal import Journal

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"traces cannot be kept in {path.parent} ({error.strerror}); name another folder, or keep none"
            ) from error
        return cls(Journal.create(path, header, durability=durability))

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.journal.path)

    @property
    def must_flush(self) -> bool:
        """Whether results wait for the disk."""
        return self.journal.durability == "power"

    def append(self, event: Event) -> None:
        """Write one event with one write.

        Raises:
            JournalWriteError: the disk is full or failing.
        """
        if isinstance(event, Attached):
            for attachment in event.attachments:
                if attachment.data:  # its side file has the name of its SHA-256
                    self.journal.externalise(attachment.data)
        self.journal.append(event.to_json(), limit=BLOB_LIMIT)

    async def flush(self) -> None:
        """Return when everything appended is on disk."""
        await self.journal.flush()

    def close(self) -> None:
        """Release the file and its lock."""
        self.journal.close()
