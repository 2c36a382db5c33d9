"""What a client asked for, kept beside the trace of its run.

A suspended run continues with another request, which brings what its calls waited for: results of the client's
tools, decisions about others. Each such request begins a *part* of the run. It stands in the record of the first one.

Invariant: a request is on the disk before its run begins or continues, so a run of this server can be resumed, joined
and told again by any later process. It holds no key of a client, and known secrets are hidden in it as in a trace.
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
from concertino.traces.store import REQUEST

from .sealed_file import read_document, write_document

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
        conversation: of a response: the one that it belongs to.
        member: that the client calls itself, without a model; empty where a model leads.
        closed: the client has cancelled it, so no later start of the server resumes it.
        side: it is a side prompt.
        tools: of the client, by `read_tools`.
        after: of a part: the number of the record behind which it begins.
        given: of a part: what calls of the client's tools returned, by the id of the call.
        decided: of a part: whether calls that need approval may be made, by the id of the call.
        parts: of the first request: those that followed.
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
    conversation: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    member: str = ""
    closed: bool = False
    side: bool = False
    tools: list[dict[str, Any]] = field(default_factory=list)
    after: int = -1
    given: Mapping[str, str] = field(default_factory=dict)
    decided: Mapping[str, bool] = field(default_factory=dict)
    parts: tuple[RequestRecord, ...] = ()

    @property
    def goes_on(self) -> bool:
        """Whether a later start of the server resumes it: no client has cancelled it, and one may read it again."""
        # An MCP client that has lost its connection has no way back to its call, unless it was told of a task.
        return not self.closed and (self.protocol != "mcp" or self.background)

    @property
    def latest(self) -> RequestRecord:
        """The request with which the run was begun, or with which it went on last."""
        return self.parts[-1] if self.parts else self

    @property
    def returned(self) -> dict[str, str]:
        """What all calls of the client's tools returned so far."""
        return {call_id: text for part in self.parts for call_id, text in part.given.items()}

    def write(self, trace: Path, *, new: bool = False) -> None:
        """Keep it.

        Args:
            new: the run has not begun, so half a record is as good as none: nothing is replaced in one step.

        Raises:
            OSError: the disk is full or failing.
        """
        data, found = self._to_json(), finder()
        if found is not None:
            data = hidden_data(data, found)
        text = json.dumps(data)  # ASCII: half a letter has no bytes
        write_document(record_beside(trace), text.encode(), new=new)

    def _to_json(self) -> dict[str, Any]:
        # `dataclasses.asdict` copies all values, and takes ten times as long.
        data = {name: getattr(self, name) for name in _NAMES}
        return {**data, "parts": [part._to_json() for part in self.parts]}

    @classmethod
    def read(cls, trace: Path) -> Self:
        """The record of a run.

        Raises:
            TraceError: no server began this run, or the file is damaged.
        """
        path = record_beside(trace)
        try:
            data = json.loads(read_document(path))
            return cls(**{**data, "parts": tuple(cls(**part) for part in data.get("parts", ()))})
        except FileNotFoundError:
            raise TraceError(f"{trace}: no server began this run") from None
        except (ValueError, TypeError) as error:
            raise TraceError(f"{path}: damaged: {error}") from error


_NAMES = tuple(each.name for each in dataclasses.fields(RequestRecord))


def record_beside(trace: Path) -> Path:
    """The file of a trace."""
    return trace.with_name(trace.name + REQUEST)
