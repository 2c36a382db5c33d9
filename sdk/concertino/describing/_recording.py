"""The run inside which models are asked: a scope with a budget, and its trace, if one is wanted.

A trace of a description is read like any other. It cannot be replayed or resumed, since no strategy leads it: answers
are kept in the cache, and the same command goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from concertino.core.budget import Budget
from concertino.core.events import RunEnded, RunStarted

if TYPE_CHECKING:
    from concertino.executor import Executor, Scope
    from concertino.pool.pool import Pool


@contextmanager
def recorded(executor: Executor, pool: Pool, budget: Budget, question: str, trace: Path | None) -> Iterator[Scope]:
    """Open a scope, and write its trace.

    Args:
        question: what stands in the trace.
        trace: a file or folder; None for no trace.
    """
    from concertino.runs.orchestrator import _trace_path, new_run_id
    from concertino.traces import JournalSink
    from concertino.traces.trace import header

    run_id = new_run_id()
    sink = JournalSink.create(_trace_path(trace, run_id), header(run_id)) if trace is not None else None
    try:
        scope = executor.open(pool, run_id=run_id, question=question, budget=budget, sink=sink)
        setup = {"strategy": {"name": "describing"}, "pool": pool.id, "budget": budget.to_json()}
        scope.emit(RunStarted(run_id, question, setup, round(time.time(), 3)))
        stop, detail = "crashed", ""
        try:
            yield scope
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
