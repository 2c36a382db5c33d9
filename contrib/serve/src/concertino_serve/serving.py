"""What all routes share: the settings, the keys, the runs, and how a request becomes a run.

Invariant: a request that repeats one joins its run. That it repeats one is said by an idempotency key, or by the
official client, which sends the same body again with a count. A request with answers for calls needs neither: the
calls say it.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from starlette.requests import Request

from .api_error import ApiError
from .conversation_store import ConversationStore
from .gate import read_body
from .key_ring import KeyRing
from .request_digests import digest_of
from .request_reader import Conversation
from .request_record import Protocol, RequestRecord
from .run_hub import RunHub
from .serve_settings import Preset, ServeSettings
from .served_run import ServedRun

Read = Callable[[dict[str, Any], str], tuple[dict[str, Any], Conversation]]
"""From a body and its owner to the fields of its record, and what is asked."""


@dataclass
class Serving:
    """What a server is made of.

    Attributes:
        statuses: how many requests ended with which status.
        began: seconds since 1970.
    """

    ring: KeyRing
    hub: RunHub
    statuses: Counter[int] = field(default_factory=Counter)
    began: int = field(default_factory=lambda: int(time.time()))

    @property
    def settings(self) -> ServeSettings:
        """Those that hold now; the presets may be swapped."""
        return self.hub.settings

    @cached_property
    def conversations(self) -> ConversationStore:
        """What clients keep beside their runs."""
        return ConversationStore(self.hub.runs.store.folder, self.hub.ledger)

    def owner(self, request: Request) -> str:
        """The client of a request.

        Raises:
            ApiError: it has no key.
        """
        # Two keys are no key: whoever stands before this server may have looked at the other one.
        return self.ring.owner_of(", ".join(request.headers.getlist("authorization")))

    def preset(self, name: Any) -> Preset:
        """A served model.

        Raises:
            ApiError: there is none of that name.
        """
        preset = self.settings.presets.get(name) if isinstance(name, str) else None
        if preset is None:
            there = ", ".join(self.settings.presets)
            raise ApiError(404, f"there is no model {str(name)[:80]!r}; there are: {there}", code="model_not_found")
        return preset

    async def run_of(self, request: Request, protocol: Protocol, read: Read) -> ServedRun:
        """The run of a request: one that it joins, or a new one.

        Args:
            read: gives the fields of the record, and the conversation, of a body.

        Raises:
            ApiError: the request is wrong, or there is no room for it.
        """
        owner = self.owner(request)
        raw, body = await read_body(request, self.settings.limits)
        preset = self.preset(body.get("model"))
        fields, asked = read(body, owner)
        key = request.headers.get("idempotency-key", "")
        of_body = digest_of(owner, protocol, raw)
        record = RequestRecord(
            owner=owner,
            preset=preset.name,
            protocol=protocol,
            digest=digest_of(owner, protocol, "key", key) if key else of_body,
            body_digest=of_body,
            created=int(time.time()),
            **fields,
        )
        if asked.answers is not None:
            return await self.hub.go_on(record, asked.answers)
        if key or request.headers.get("x-stainless-retry-count", "0") not in ("", "0"):
            return await self.hub.join_or_begin(record, asked, preset)
        if asked.blocked is not None:
            raise asked.blocked
        return await self.hub.begin(record, asked, preset)


def run_headers(run: ServedRun) -> dict[str, str]:
    """What every answer about a run says of it."""
    return {"x-concertino-run": run.id, "x-should-retry": "false"}


def as_read(run: ServedRun, **changes: Any) -> ServedRun:
    """A run as another request reads it."""
    return dataclasses.replace(run, request=dataclasses.replace(run.request, **changes))
