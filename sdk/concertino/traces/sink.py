"""From events to a journal file: the sink that a run writes to.

Contents above 64 KiB go to side files; the record names them. What an event says about itself (`to_json`) is exactly
what stands in the file. Encoding and writing a megabyte takes milliseconds, for which an event loop must not stand
still: so a large event is packed in another thread, and appended when that is done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from concertino.core.errors import UsageError
from concertino.core.events import Asked, Attached, CallEnded, CallStarted, Event, Replied, RunStarted
from concertino.core.private_files import make_private_folder

from .blobs import BLOB_LIMIT
from .journal_errors import JournalError
from .journal_line import encode_json

if TYPE_CHECKING:
    from concertino.core.attachment import Attachment

    from .journal import Journal

SUFFIX = ".trace.jsonl"
"""How trace files end."""

_LONG = BLOB_LIMIT // 2
"""Characters of a text that makes an event a large one."""

_SHARED = ("members", "tools")
"""Parts of a run's set-up that all runs of a pool share, and nobody changes."""
_MOST = 16
_made: dict[int, tuple[object, bytes]] = {}
"""JSON of such parts, by their ids; with the parts, so that an id stays that of its part."""

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
            return cls(Journal.create(path, header, durability=durability))
        except JournalError:  # most folders are there, so none is looked for before
            if path.parent.is_dir():
                raise
        try:
            make_private_folder(path.parent)
        except OSError as error:
            raise UsageError(
                f"traces cannot be kept in {path.parent} ({error.strerror}); name another folder, or keep none"
            ) from error
        return cls(Journal.create(path, header, durability=durability))

    @property
    def path(self) -> Path:
        """The file."""
        return self.journal.path

    @property
    def must_flush(self) -> bool:
        """Whether calls and results wait for the disk, or for a mirror."""
        return self.journal.must_flush

    def is_large(self, event: Event) -> bool:
        """Whether writing an event takes long enough that `pack` should do it; a guess, made quickly."""
        # The commonest first: it is asked for every record.
        if isinstance(event, CallEnded):
            return event.full is not None or _is_long(event.observation.content)
        if isinstance(event, CallStarted):
            return isinstance(event.arguments, dict) and any(map(_is_long, event.arguments.values()))
        if isinstance(event, Asked):
            return sum(len(message.text) for message in event.messages) > _LONG
        if isinstance(event, Replied):
            return len(event.reply.text) > _LONG or event.reply.token_ids is not None
        return isinstance(event, Attached)

    async def pack(self, event: Event) -> bytes:
        """Do the slow part of writing a large event in another thread; `append_packed` does the rest."""
        # Imported here: reading traces needs no event loop.
        from concertino.core.background import in_background

        return await in_background(lambda: self._pack(event, in_steps=True))

    async def keep(self, attachments: Sequence[Attachment]) -> None:
        """Write attachments in another thread, before `append` records them; `append` says it if the disk refuses."""
        from concertino.core.background import in_background

        with contextlib.suppress(JournalError):
            await in_background(lambda: self._keep(attachments))

    def _keep(self, attachments: Sequence[Attachment]) -> None:
        for attachment in attachments:
            if attachment.data:  # its side file has the name of its SHA-256
                self.journal.externalise(attachment.data, attachment.sha256)

    def append_packed(self, packed: bytes) -> None:
        """Write an event that `pack` gave. Errors are those of `append`."""
        self.journal.append_packed(packed)

    def append(self, event: Event) -> None:
        """Write one event with one write.

        Raises:
            JournalWriteError: the disk is full or failing.
        """
        self.journal.append_packed(self._pack(event))

    def _pack(self, event: Event, in_steps: bool = False) -> bytes:
        if isinstance(event, Attached):
            self._keep(event.attachments)
        if isinstance(event, RunStarted) and len(body := run_json(event)) <= BLOB_LIMIT:
            return body
        return self.journal.pack(event.to_json(), limit=BLOB_LIMIT, in_steps=in_steps)

    async def flush(self) -> None:
        """Return when everything appended is on disk."""
        await self.journal.flush()

    def close(self) -> None:
        """Release the file and its lock."""
        self.journal.close()


def run_json(event: RunStarted) -> bytes:
    """The JSON of `event.to_json()`. What a pool shares with all of its runs is made into JSON once."""
    shared = [key for key in _SHARED if isinstance(event.setup.get(key), (dict, list))]
    own = {key: value for key, value in event.setup.items() if key not in shared}
    fields = [encode_json(own)[1:-1]] if own else []
    fields += [b'"%b":%b' % (key.encode(), _once(event.setup[key])) for key in shared]
    record = event.to_json()
    del record["setup"]
    return b'%b,"setup":{%b}}' % (encode_json(record)[:-1], b",".join(fields))


def _once(value: object) -> bytes:
    """The JSON of a value that nobody changes."""
    known = _made.get(id(value))
    if known is None or known[0] is not value:
        if len(_made) >= _MOST:
            _made.clear()
        known = _made[id(value)] = value, encode_json(value)
    return known[1]


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > _LONG
