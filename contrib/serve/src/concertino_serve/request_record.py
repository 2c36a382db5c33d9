"""What a client asked for, kept beside the trace of its run.

Invariant: it is on the disk before the run begins, so a run of this server can be resumed, joined and told again by
any later process. It holds no key of a client, and known secrets are hidden in it as in a trace.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from concertino.core.errors import TraceError
from concertino.core.known_secrets import finder, hidden_data
from concertino.core.private_files import open_private, write_private
from concertino.traces.store import REQUEST

Protocol = Literal["chat", "responses"]


@dataclass(frozen=True)
class RequestRecord:
    """A request that began a run.

    Attributes:
        owner: the name of the client's key; empty where the server has none.
        digest: of what makes a repeated request the same one.
        body_digest: of the body.
        created: seconds since 1970.
        streams: the client reads a stream.
        usage: the client wants the usage at the end of the stream.
        background: it goes on without a client.
        input: of a response: the items.
        schema: of the answer.
        closed: the client has cancelled it, so no later start of the server resumes it.
    """

    owner: str
    preset: str
    protocol: Protocol
    digest: str
    body_digest: str
    created: int
    streams: bool = False
    usage: bool = False
    background: bool = False
    input: list[dict[str, Any]] = field(default_factory=list)
    instructions: str = ""
    previous: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    closed: bool = False

    def write(self, trace: Path, *, new: bool = False) -> None:
        """Keep it.

        Args:
            new: the run has not begun, so half a record is as good as none: nothing is replaced in one step.

        Raises:
            OSError: the disk is full or failing.
        """
        data, found = {name: getattr(self, name) for name in _NAMES}, finder()
        if found is not None:
            data = hidden_data(data, found)
        path, text = record_beside(trace), json.dumps(data, ensure_ascii=False).encode()
        if not new:
            write_private(path, text)
            return
        with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(text)

    @classmethod
    def read(cls, trace: Path) -> Self:
        """The record of a run.

        Raises:
            TraceError: no server began this run, or the file is damaged.
        """
        path = record_beside(trace)
        try:
            return cls(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            raise TraceError(f"{trace}: no server began this run") from None
        except (ValueError, TypeError) as error:
            raise TraceError(f"{path}: damaged: {error}") from error


_NAMES = tuple(each.name for each in dataclasses.fields(RequestRecord))


def record_beside(trace: Path) -> Path:
    """The file of a trace."""
    return trace.with_name(trace.name + REQUEST)
