"""What is known of a run at its end, put together record by record: its summary, what is in doubt, what waits.

It holds ids and numbers, never a text of a result: the facts of 70,000 records take some megabytes, whatever the
results take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

FACTS_WITHOUT = {"ask": ("messages",), "result": ("content", "full")}
"""Fields that facts are made without."""


class TraceFacts:
    """Facts about a run. Feed it the records in their order with `apply`.

    Attributes:
        first, last: those records; of the first, what identifies the run.
        rounds: how many plans there are.
        seconds: from the start of the run to the last thing on record.
        spared: seconds for which the run waited for decisions.
        attached: the records of attachments.
        asked: calls for which a decision was asked, with the record; `decided`: those that have one.
        started: ids of calls and requests that were started, in order; `ended`: those with a known end.
    """

    def __init__(self) -> None:
        self.last: Mapping[str, Any] = {}
        self.rounds: set[int] = set()
        self.plans = 0
        self.seconds = 0.0
        self.spared = 0.0
        self.asked: dict[str, dict[str, Any]] = {}
        self.decided: set[str] = set()
        self.attached: list[dict[str, Any]] = []
        self.started: dict[str, None] = {}
        self.ended: set[str] = set()
        self._first = True
        # Requests to models are no calls, and neither are checks by guards.
        self._others: set[str] = set()
        # The last result of an id counts: a resumed run repeats what was in doubt.
        self._worked: dict[str, bool] = {}

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> TraceFacts:
        """The facts of all records."""
        facts = cls()
        for record in records:
            facts.apply(record)
        return facts

    def apply(self, record: Mapping[str, Any]) -> None:
        """Take one record."""
        kind = record["t"]
        if self._first:  # its time is that of the calendar
            self._first = False
        else:
            seen = record["observation"] if kind == "reply" else record
            self.seconds = max(self.seconds, seen.get("ended", record.get("at", 0.0)))
        take = _TAKE.get(kind)
        if take is not None:
            take(self, record)
        # An end is small but for its answer; of others, no more than the kind is asked for.
        self.last = record if kind == "end" else {"t": kind}

    def _asked(self, record: Mapping[str, Any]) -> None:
        self.started[record["id"]] = None
        self._others.add(record["id"])

    def _intent(self, record: Mapping[str, Any]) -> None:
        self.started[record["id"]] = None
        if record["kind"] == "guard":
            self._others.add(record["id"])

    def _result(self, record: Mapping[str, Any]) -> None:
        self.ended.add(record["id"])
        if not record.get("parent"):
            self._worked[record["id"]] = record["status"] == "OK"

    def _reply(self, record: Mapping[str, Any]) -> None:
        self.ended.add(record["id"])

    def _plan(self, record: Mapping[str, Any]) -> None:
        self.plans += 1
        self.rounds.add(record["round"])

    def _approval(self, record: Mapping[str, Any]) -> None:
        self.asked[record["id"]] = dict(record)

    def _attach(self, record: Mapping[str, Any]) -> None:
        self.attached.append(dict(record))

    def _decision(self, record: Mapping[str, Any]) -> None:
        self.decided.add(record["id"])
        self.spared += record.get("waited", 0.0)

    # -- asked at the end --------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether the run came to an end."""
        return bool(self.last.get("t") == "end")

    def in_doubt(self) -> list[str]:
        """Ids of calls that were started and whose end is not known."""
        return [call_id for call_id in self.started if call_id not in self.ended]

    def pending(self) -> dict[str, dict[str, Any]]:
        """Calls that wait for a person's decision: their `approval` records by id."""
        return {call_id: record for call_id, record in self.asked.items() if call_id not in self.decided}

    def counts(self) -> tuple[int, int]:
        """The orchestrator's own calls with a result, and those of them that failed."""
        worked = [ok for call_id, ok in self._worked.items() if call_id not in self._others]
        return len(worked), worked.count(False)


_TAKE: dict[str, Any] = {
    "ask": TraceFacts._asked,
    "intent": TraceFacts._intent,
    "result": TraceFacts._result,
    "reply": TraceFacts._reply,
    "plan": TraceFacts._plan,
    "approval": TraceFacts._approval,
    "decision": TraceFacts._decision,
    "attach": TraceFacts._attach,
}
