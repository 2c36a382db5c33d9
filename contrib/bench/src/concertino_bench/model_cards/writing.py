"""The writer: a model that says where another one is strong and where it is weak.

Its note is kept unfiltered, under a key of the evidence, the writer and the instructions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from concertino import CallFailed, ModelSpec

from .answers import digest, identity
from .cache import Cache
from .note import Note, read_note
from .profile import GradedAnswer, Profile
from .prompt import VERSION, request_for

if TYPE_CHECKING:
    from .recording import RecordedModels

_TEXTS = "texts"


class WriterReply(NamedTuple):
    """The result of asking a writer: a note and when it was written, or why there is none."""

    note: Note | None
    at: float = 0.0
    trouble: str = ""


class Writer:
    """Writes notes.

    Attributes:
        spec: the model.
        asked: requests that were made to it.
    """

    def __init__(self, spec: ModelSpec, models: RecordedModels, cache: Cache) -> None:
        self.spec = spec
        self.asked = 0
        self._models = models
        self._cache = cache

    async def write(self, profile: Profile, graded: Sequence[GradedAnswer]) -> WriterReply:
        """The note on a profile, an earlier one if the evidence is the same.

        Raises:
            RunError: it cannot be kept.
        """
        # The evidence holds no prices: a new price changes the figures and not what a writer would say.
        key = digest([profile.evidence, identity(self.spec, self._models.scope.pool), VERSION])
        known = self._cache.read(_TEXTS, key)
        if known is not None:
            written = Note.from_json(known.get("note"))
            if written:
                return WriterReply(written, float(known.get("at", 0.0)))
            # Then it is asked again, as for a missing one.
            self._cache.damaged(_TEXTS, key, "it holds no text")
        note, trouble = await self._ask(profile, graded)
        if not note:
            return WriterReply(None, trouble=trouble)
        at = round(time.time(), 3)
        self._cache.write(_TEXTS, key, {"note": note.to_json(), "writer": self.spec.name, "at": at})
        return WriterReply(note, at)

    async def _ask(self, profile: Profile, graded: Sequence[GradedAnswer]) -> tuple[Note | None, str]:
        """The note, or None and why there is none."""
        request = request_for(profile, graded)
        try:
            reply, seen = await self._models.ask(self.spec.name, request, f"text.{profile.model}")
        except CallFailed as failed:
            seen = failed.observation
            self.asked += seen.attempts > 0
            return None, seen.error.message if seen.error else seen.status.value
        self.asked += seen.attempts > 0
        return read_note(reply.text), "its reply holds no strengths and no weaknesses"
