"""How an execution is stopped whose plugin code may not obey.

    cancel, wait `grace`, cancel again, wait, close the coroutine, give it up

Invariant: nobody waits longer than two graces for a plugin. If the task does not deliver an observation until then, the
ladder does.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .execution import Execution

StopReason = Literal["deadline", "cancelled"]


class Ladder:
    """The steps that stop an execution whose task runs: cancel, cancel again, close the coroutine, give it up.

    Attributes:
        why: `deadline` or `cancelled`.
        interrupted: whether an attempt was under way, whose outcome nobody knows.
    """

    __slots__ = ("_execution", "_timer", "interrupted", "why")

    def __init__(self, execution: Execution, why: StopReason) -> None:
        self._execution = execution
        self._timer: asyncio.TimerHandle | None = None
        self.why: StopReason = why
        self.interrupted = False

    def begin(self) -> None:
        """The first step."""
        execution = self._execution
        if execution.task is not None:
            execution.task.cancel()
        if execution.phase == "running":
            self._later(1, self._insist)
        else:  # a task that is cancelled before its first step never runs: nobody else would deliver
            execution.finish(execution.stopped())

    def end(self) -> None:
        """The execution has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close_later(self) -> None:
        """Cancel the task of an execution that has ended, and see to it that it leaves."""
        execution = self._execution
        if execution.task is not None:
            execution.task.cancel()
            execution.runtime.leaving(execution.task)
            # Two graces, as long as the ladder waits in all.
            execution.scope.loop.call_later(2 * execution.runtime.limits.grace, self._close)

    def _later(self, graces: float, step: Any) -> None:
        self._timer = self._execution.scope.loop.call_later(graces * self._execution.runtime.limits.grace, step)

    def _insist(self) -> None:
        execution = self._execution
        if execution.task is not None and not execution.over:
            execution.task.cancel()
            # The second cancellation ends what swallowed the first one, or awaits in its cleanup.
            self._later(1, self._give_up)

    def _give_up(self) -> None:
        """Deliver without the task, which does not obey, and close its coroutine."""
        if not self._execution.over:
            # Delivered first: closing runs cleanup code of the plugin, which may block.
            self._execution.finish(self._execution.stopped())
            self._close()

    def _close(self) -> None:
        """Close its coroutine; count it if that does not end it."""
        execution, runtime = self._execution, self._execution.runtime
        task, coroutine = execution.task, execution.coroutine
        if task is None or task.done():
            return
        closed = False
        if coroutine is not None:
            # Closing throws GeneratorExit into plugin code, which may answer with anything.
            with contextlib.suppress(BaseException):
                coroutine.close()
            # The state decides, for a coroutine that swallows GeneratorExit is still open.
            closed = inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
        # The task still waits for what its coroutine awaited; this wakes it, and it finds that closed.
        task.cancel()
        if closed:
            # It did end, so it does not count towards the quarantine of the member.
            runtime.misbehaviour.closed_calls += 1
            runtime.leaving(task)
            return
        runtime.misbehaviour.abandon(task, execution.bound.name, execution.call_id)
        execution.bound.note_abandoned(runtime.limits.abandoned)
