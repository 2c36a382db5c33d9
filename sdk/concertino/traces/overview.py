"""What a list of runs says of each: from the index of a large trace, if it has one that fits, else from the trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from .index import keep_facts, known_facts
from .trace import Summary, Trace


@dataclass(frozen=True, slots=True)
class Overview:
    """What is known of a run without its records.

    Attributes:
        summary: one line about it.
        began: seconds since 1970.
        end: the last record, if the run came to an end.
        pending: calls that wait for a decision: the record of the request, by id.
    """

    summary: Summary
    began: float
    end: Mapping[str, Any] | None
    pending: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, path: Path) -> Self:
        """What a trace says now.

        Raises:
            TraceError: as `Trace.load`.
        """
        facts = known_facts(path)
        if facts is None:
            try:
                before = path.stat()
            except OSError:
                before = None  # `load` says what is wrong
            trace = Trace.load(path)
            pending = {call_id: dict(record) for call_id, record in trace.pending().items()}
            summary = trace.summary()
            facts = {"summary": summary.to_json(), "began": trace.began, "end": trace.end, "pending": pending}
            if before is not None:
                keep_facts(path, before, facts)
        return cls(
            Summary(**{**facts["summary"], "path": str(path)}), float(facts["began"]), facts["end"], facts["pending"]
        )
