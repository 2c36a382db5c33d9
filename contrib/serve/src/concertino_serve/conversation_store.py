"""Conversations: which items and which runs follow each other. What a run said is read from its trace.

    {"id": "conv_...", "owner": "ada", "created": 1, "metadata": {}, "entries": [...], "dropped": [...]}

An entry is a list of items that the client added, or the id of an answer.

Invariant: a conversation is a file that is replaced in one step; only its owner sees it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concertino.core.errors import TraceError
from concertino.core.known_secrets import finder, hidden_data
from concertino.core.private_files import make_private_folder

from .api_error import ApiError
from .run_ledger import RunLedger
from .sealed_file import read_document, write_document

_FOLDER = "conversations"
_ID = re.compile(r"conv_[0-9a-f]{24}")
Entry = str | list[dict[str, Any]]


@dataclass(frozen=True)
class KeptConversation:
    """A conversation.

    Attributes:
        created: seconds since 1970.
        entries: in their order.
        dropped: ids of items that the client has removed.
    """

    id: str
    owner: str
    created: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    dropped: tuple[str, ...] = ()


class ConversationStore:
    """The conversations of a server.

    Attributes:
        changing: a block in which no other worker changes any.

    Args:
        traces: the folder of its runs; they lie in a folder in it.
        ledger: makes one change at a time of those of several workers.
    """

    def __init__(self, traces: Path, ledger: RunLedger) -> None:
        self._folder = traces / _FOLDER
        self.changing = ledger.turn

    def make(
        self, owner: str, metadata: Mapping[str, str], entries: tuple[Entry, ...], name: str = ""
    ) -> KeptConversation:
        """A new conversation, on disk.

        Args:
            name: its id; by default one that nobody can guess.
        """
        make_private_folder(self._folder)
        name = name or f"conv_{secrets.token_hex(12)}"
        return self.keep(KeptConversation(name, owner, int(time.time()), metadata, entries))

    def has(self, name: str) -> bool:
        """Whether there is a conversation of that id, of whomever."""
        return self._path(name).exists()

    def get(self, name: str, owner: str) -> KeptConversation:
        """A conversation of a client.

        Raises:
            ApiError: there is none.
        """
        try:
            data = json.loads(read_document(self._path(name))) if _ID.fullmatch(name) else {}
            found = KeptConversation(**{**data, "entries": tuple(data["entries"]), "dropped": tuple(data["dropped"])})
        except (OSError, TraceError, ValueError, TypeError, KeyError):
            found = None
        if found is None or found.owner != owner:
            raise ApiError(404, f"there is no conversation {name[:80]!r}", code="not_found")
        return found

    def keep(self, conversation: KeptConversation) -> KeptConversation:
        """Write it, and give it back.

        Raises:
            OSError: the disk is full or failing.
        """
        data, found = dataclasses.asdict(conversation), finder()
        if found is not None:
            data = hidden_data(data, found)
        write_document(self._path(conversation.id), json.dumps(data, ensure_ascii=False).encode())
        return conversation

    def add(self, name: str, owner: str, entry: Entry) -> KeptConversation:
        """Put an entry at the end; the id of an answer stands once.

        Raises:
            ApiError: the conversation is not known.
        """
        with self.changing():
            known = self.get(name, owner)
            if isinstance(entry, str) and entry in known.entries:
                return known
            return self.keep(dataclasses.replace(known, entries=(*known.entries, entry)))

    def delete(self, conversation: KeptConversation) -> None:
        """Remove it; its runs stay."""
        self._path(conversation.id).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
