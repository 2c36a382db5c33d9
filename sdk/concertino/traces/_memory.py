"""What a trace remembers of a run, for the one that goes on with it.

Resume asks before every call: is this very call finished? Then its result is given back and nothing is spent. Was it
started, with no known end? Then it is in doubt: repeated under the same idempotency key where that is safe, else
observed as `unknown_outcome`. Because the orchestrator's replies are remembered too, a resumed run goes the same way
up to the point where the trace ends.
"""

from __future__ import annotations

from typing import Any

from concertino._observation import Observation, Status
from concertino._plan import unparse

from ._trace import Trace


class TraceMemory:
    """The finished and the doubtful calls of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._arguments: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._results: dict[str, dict[str, Any]] = {}
        self._replies: dict[str, dict[str, Any]] = {}
        for record in trace.records:
            match record["t"]:
                case "intent":
                    self._arguments[record["id"]] = record["arguments"]
                    self._names[record["id"]] = record["name"]
                case "ask":
                    self._names[record["id"]] = record["model"]
                case "result":
                    self._results[record["id"]] = record
                case "reply":
                    self._replies[record["id"]] = record
        self._doubtful = set(trace.in_doubt())
        self._rounds = {record["round"] for record in trace.of_kind("plan")}

    def __len__(self) -> int:
        return len(self._results) + len(self._replies)

    def planned(self, round_: int) -> bool:
        """Whether the plan of a round is on record."""
        return round_ in self._rounds

    def recall(self, call_id: str, name: str, arguments: Any) -> Observation | None:
        """The finished result of this very call, None if there is none or it was another call."""
        reply = self._replies.get(call_id)
        if reply is not None:
            observation = Observation.from_json(reply["observation"])
            observation.content = reply["reply"]
            return observation
        result = self._results.get(call_id)
        if result is None or self._names.get(call_id, result["name"]) != name:
            return None
        known = self._arguments.get(call_id)
        given = {"messages": arguments} if isinstance(arguments, list) else unparse(arguments)
        if known is not None and known != given:
            return None
        observation = Observation.from_json(result)
        if observation.status is not Status.OK and not self._was_final(observation):
            return None
        return observation

    @staticmethod
    def _was_final(observation: Observation) -> bool:
        """A call that ended only because the run was cancelled has not had its chance."""
        return observation.error is None or observation.error.code not in ("cancelled", "queue_deadline")

    def finished(self, call_id: str) -> bool:
        """Whether the call has a result on record."""
        return call_id in self._results

    def full_content(self, call_id: str) -> Any:
        """Content before truncation."""
        return self._results.get(call_id, {}).get("full")

    def in_doubt(self, call_id: str) -> bool:
        """Whether the call was started and its end is not known."""
        return call_id in self._doubtful
