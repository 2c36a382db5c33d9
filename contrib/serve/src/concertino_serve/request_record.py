"""What a client asked for, kept beside the trace of its run.

Invariant: it is on the disk before the run begins, so a run of this server can be resumed, joined and told again by
any later process. It holds no key of a client, and known secrets are hidden in it as in a trace.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from concertino.core.errors import TraceError
from concertino.core.known_secrets import finder, hidden_data
from concertino.core.private_files import write_private
from concertino.traces.store import REQUEST

Protocol = Literal["chat", "responses", "mcp", "a2a"]


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
        member: that the client calls itself, without a model; empty where a model leads.
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
    member: str = ""
    closed: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether a later start of the server resumes it: no client has cancelled it, and one may read it again."""
        # An MCP client that has lost its connection has no way back to its call, unless it was told of a task.
        return not self.closed and (self.protocol != "mcp" or self.background)

    def write(self, trace: Path) -> None:
        """Keep it.

        Raises:
            OSError: the disk is full or failing.
        """
        data, found = dataclasses.asdict(self), finder()
        if found is not None:
            data = hidden_data(data, found)
        write_private(record_beside(trace), json.dumps(data).encode())  # ASCII: half a letter has no bytes

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


def record_beside(trace: Path) -> Path:
    """The file of a trace."""
    return trace.with_name(trace.name + REQUEST)
