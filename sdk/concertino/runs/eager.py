"""Eager dispatch: a call starts when its text is complete, while the model still writes.

The machine says which calls of an unfinished text are complete (`Machine.complete_calls`). Those that only read start,
under the very ids that the round's plan will give them. When the text is finished, the plan takes over what was begun.

Invariants: no call starts twice; a call that writes never starts early; a call that began and is not in the plan is
stopped, and its observation stays on record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from concertino.core.plan import Call, Plan, references

if TYPE_CHECKING:
    from concertino.executor import Executor, PlanRun, Scope
    from concertino.strategies import Machine


class EagerDispatcher:
    """The calls of one round that begin before its text is complete. Hears the text as it is written."""

    def __init__(self, machine: Machine, executor: Executor, scope: Scope, round_number: int) -> None:
        self._machine = machine
        self._executor = executor
        self._scope = scope
        self._prefix = f"{round_number}."
        self._text = ""
        self._begun: dict[str, tuple[Call, PlanRun]] = {}

    def on_attempt(self) -> None:
        """Another attempt writes from the start; calls that it writes again do not begin again."""
        self._text = ""

    def on_thought(self, piece: str) -> None:
        """Thoughts hold no calls."""

    def on_end(self) -> None:
        """The finished text is read by the machine."""

    def on_text(self, piece: str) -> None:
        """More of the text."""
        seen = len(self._text)
        self._text += piece
        # Reading the whole text at every piece would take quadratic time, so it waits for the end of a call; a mark may
        # be split over two pieces.
        if not any(self._text.find(mark, max(0, seen - len(mark) + 1)) >= 0 for mark in self._machine.marks):
            return
        for call in self._machine.complete_calls(self._text):
            if call.id in self._begun or call.error is not None or call.after or references(call.arguments):
                continue  # what waits for another call starts with the plan
            spec = self._scope.pool.find(call.name)
            if spec is not None and not spec.writes and not spec.approval:
                run = self._executor.begin_plan(Plan([call]), self._scope, prefix=self._prefix)
                self._begun[call.id] = (call, run)

    def taken_by(self, plan: Plan) -> Mapping[str, PlanRun]:
        """What was begun of a plan, by call."""
        # Compared in full, because the finished text may read otherwise than its beginning.
        wanted = {call.id: (call.name, call.arguments) for call in plan.calls if call.error is None}
        return {
            call_id: run
            for call_id, (call, run) in self._begun.items()
            if wanted.get(call_id) == (call.name, call.arguments)
        }

    async def stop(self, *, but: Mapping[str, PlanRun] | None = None) -> None:
        """Stop what was begun, but for what a plan took over."""
        for call_id, (_, run) in self._begun.items():
            if but is None or call_id not in but:
                await self._executor.stop_plan(run)
