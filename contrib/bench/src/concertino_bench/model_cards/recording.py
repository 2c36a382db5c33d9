"""The run inside which models are asked: a scope with a budget, and its trace, if one is wanted.

A trace of a description is read like any other. It cannot be replayed or resumed, since no strategy leads it: answers
are kept in the cache, and the same command continues from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from concertino import Budget, ChatRequest, Observation, Reply, TraceStore
from concertino.core.events import CallEnded, Event, RunEnded, RunStarted
from concertino.runs.orchestrator import new_run_id
from concertino.traces import VERSION, JournalSink

if TYPE_CHECKING:
    from concertino import Executor, Pool
    from concertino.executor import Scope


class RecordedModels:
    """The models of a pool, each request to which is recorded.

    Attributes:
        scope: what the requests share: pool, budget, trace.
    """

    def __init__(self, executor: Executor, scope: Scope) -> None:
        self.scope = scope
        self._executor = executor
        self._ended: dict[str, Observation] = {}
        scope.listeners.append(self._note)

    async def ask(self, model: str, request: ChatRequest, call_id: str) -> tuple[Reply, Observation]:
        """Ask a model; of a router, the observation is that of the model which it chose.

        Raises:
            CallFailed: it did not answer; the observation says why.
        """
        reply = await self._executor.ask(model, request, self.scope, call_id=call_id)
        return reply, self._ended.pop(call_id)

    def _note(self, event: Event) -> None:
        """Keep the end of a request; a router's further tries have the same id, followed by `~2` and so on."""
        if isinstance(event, CallEnded):
            self._ended[event.observation.call_id.partition("~")[0]] = event.observation


@contextmanager
def recorded(
    executor: Executor, pool: Pool, budget: Budget, question: str, trace: Path | None
) -> Iterator[RecordedModels]:
    """Open a scope, and write its trace.

    Args:
        question: what stands in the trace.
        trace: a file or folder; None for no trace.
    """
    run_id = new_run_id()
    sink = None
    if trace is not None:
        file = TraceStore(trace).path_for(run_id) if trace.is_dir() or not trace.suffix else trace
        sink = JournalSink.create(file, {"t": "header", "v": VERSION, "format": "concertino-trace", "run": run_id})
    try:
        scope = executor.open(pool, run_id=run_id, question=question, budget=budget, sink=sink)
        setup = {"strategy": {"name": "model-cards"}, "pool": pool.id, "budget": budget.to_json()}
        scope.emit(RunStarted(run_id, question, setup, round(time.time(), 3)))
        # Assumed until the block ends, so that the trace says so whatever happens.
        stop, detail = "crashed", ""
        try:
            yield RecordedModels(executor, scope)
            stop = "answered"
        except BaseException as error:
            stop = "crashed" if isinstance(error, Exception) else "cancelled"
            detail = f"{type(error).__name__}: {error}"
            raise
        finally:
            answer = "described" if stop == "answered" else None
            scope.emit_result(RunEnded(answer, stop, detail, scope.ledger.usage.to_json(), scope.now()))
    finally:
        if sink is not None:
            sink.close()
