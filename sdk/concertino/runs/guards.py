"""The guards of one run: its question before it is on record, its answer before anybody sees it, its end in between.

Guards of calls and results are asked by the executor (`executor.guarding`); a verdict that ends the run arrives here,
whoever gave it.

Invariant: with a guard of the question that runs beside the model, no call is made and no answer is given before its
verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from concertino.core.approval import Deny
from concertino.executor.guarding import Check, Guarding
from concertino.members.guards import EndRun
from concertino.strategies import Done

if TYPE_CHECKING:
    from collections.abc import Mapping

    from concertino.core.events import Event
    from concertino.executor import Executor, Scope

_QUESTION = "1"
"""The one question of a run, in the ids of its checks."""


class _HeldBack:
    """A trace that is not begun yet: what belongs into it once the run is on record."""

    must_flush = False

    def __init__(self) -> None:
        self.events: list[Event] = []

    def is_large(self, event: Event) -> bool:
        return False

    async def pack(self, event: Event) -> bytes:
        raise NotImplementedError

    def append_packed(self, packed: bytes) -> None:
        raise NotImplementedError

    def append(self, event: Event) -> None:
        self.events.append(event)

    async def flush(self) -> None:
        """Nothing is on disk yet."""


class RunGuards:
    """The guards at work in one run.

    Attributes:
        of_question, of_answer: whether there are any.
    """

    def __init__(self, guarding: Guarding, executor: Executor, scope: Scope) -> None:
        self._guarding = guarding
        self._executor = executor
        self._scope = scope
        self._beside: asyncio.Task[bool] | None = None
        self.of_question = bool(guarding.of("question"))
        self.of_answer = bool(guarding.of("answer"))
        scope.halted = scope.loop.create_future()

    # -- the question ----------------------------------------------------------------------------------------------

    async def question(self, text: str) -> tuple[str, str | None]:
        """The question that is left, and why the run must end, None if it may go on.

        What happens meanwhile is held back, for the record of the run begins with the question that is left. `record`
        writes it.
        """
        scope = self._scope
        real, scope.sink = scope.sink, _HeldBack()
        listeners, scope.listeners = scope.listeners, []
        try:
            value, refused = await self._judge("question", _QUESTION, text)
        finally:
            scope.sink, scope.listeners = real, listeners
        return value, None if refused is None else refused.reason

    async def _judge(
        self, stage: Any, about: str, text: str, *, beside: bool = False
    ) -> tuple[str, Deny | EndRun | None]:
        guards = self._guarding.of(stage, beside=beside)

        def subject(value: str) -> Mapping[str, Any]:
            return {"text": value}

        return await self._guarding.judge(guards, self._executor, self._scope, Check(stage, about), text, subject)

    def begin_beside(self, question: str) -> None:
        """Ask the guards that run beside the model."""
        if self._guarding.of("question", beside=True):
            self._beside = self._scope.loop.create_task(self._ask_beside(question))

    async def _ask_beside(self, question: str) -> bool:
        _, refused = await self._judge("question", _QUESTION, question, beside=True)
        if refused is not None:
            self._scope.end_run(refused.reason)
        return refused is None

    async def passed(self) -> None:
        """Return when the guards beside the model let the question pass. If they do not, the run is being ended."""
        if self._beside is not None and not await asyncio.shield(self._beside):
            await asyncio.Future()

    @property
    def undecided(self) -> bool:
        """Whether a guard beside the model has not given its verdict."""
        return self._beside is not None and not self._beside.done()

    # -- the answer ------------------------------------------------------------------------------------------------

    async def answer(self, text: str, attempt: int) -> tuple[str, Deny | EndRun | None]:
        """The answer that is left, and why it must not be given, None if it may."""
        return await self._judge("answer", str(attempt), text)

    # -- the end ---------------------------------------------------------------------------------------------------

    async def until_halted(self, work: Coroutine[Any, Any, Done]) -> Done:
        """Do the work of the run, unless a guard ends it meanwhile."""
        scope = self._scope
        assert scope.halted is not None
        task = scope.loop.create_task(work)
        either: set[asyncio.Future[Any]] = {task, scope.halted}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not scope.halted.done():
                return task.result()
            return Done(None, "guard", scope.halted.result())
        finally:
            running: list[asyncio.Future[Any]] = [
                each for each in (task, self._beside) if each is not None and not each.done()
            ]
            for each in running:
                each.cancel()
            if running:
                await asyncio.wait(running)
