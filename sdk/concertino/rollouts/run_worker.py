"""The program of a worker process: it makes the work once, and then carries out orders, many at once.

Reads JSON lines from standard input: first `{"module", "work", "data"}`, which names a `Work`, then `{"order"}`,
`{"cancel": id}` and `{"close"}`. Answers with JSON lines on the pipe that was its standard output: `{"ready"}` or
`{"unfit", "kind"}`, then `{"result"}` or `{"cancelled": id}` for each order.

Invariant: every order gets one answer, or this process is gone. Whatever members print goes nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from typing import Any

from concertino.core.errors import ConcertinoError

from .ordered_work import Work, failure_of, made_work
from .run_order import RunOrder, RunResult

_LINE_BYTES = 64 << 20
"""Bytes that an order has at most."""


def main() -> None:
    """Serve orders until the input ends."""
    requests, replies = os.dup(0), os.dup(1)  # not inherited by what members execute
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(devnull, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_Desk(replies).serve(requests))


class _Desk:
    """The orders of this process."""

    def __init__(self, replies: int) -> None:
        self._replies = replies
        self._running: dict[str, asyncio.Task[RunResult]] = {}

    async def serve(self, requests: int) -> None:
        """Take orders until the input ends or says so."""
        loop, lines = asyncio.get_running_loop(), asyncio.StreamReader(limit=_LINE_BYTES)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(requests, "rb", 0))
        serving = asyncio.current_task()
        assert serving is not None
        # As at the end of the input: runs are stopped in order, and can be continued.
        loop.add_signal_handler(signal.SIGTERM, serving.cancel)
        try:
            work = made_work(json.loads(await lines.readline()))
        except (ConcertinoError, ImportError, AttributeError) as error:
            self._answer({"unfit": f"{error}", "kind": type(error).__name__})
            return
        self._answer({"ready": True})
        try:
            while line := await lines.readline():
                request = json.loads(line)
                if "close" in request:
                    break
                self._take(request, work)
        finally:
            await self._stop()
            await work.aclose()

    def _take(self, request: Mapping[str, Any], work: Work) -> None:
        if "cancel" in request:
            task = self._running.get(request["cancel"])
            if task is not None:
                task.cancel()
            else:
                self._answer({"cancelled": request["cancel"]})
            return
        order = RunOrder.from_json(request["order"])
        task = asyncio.ensure_future(work.perform(order))
        self._running[order.id] = task
        task.add_done_callback(lambda ended: self._ended(order, ended))

    def _ended(self, order: RunOrder, task: asyncio.Task[RunResult]) -> None:
        self._running.pop(order.id, None)
        if task.cancelled():
            self._answer({"cancelled": order.id})
            return
        try:
            self._answer({"result": task.result().to_json()})
        except Exception as error:
            self._answer({"result": failure_of(order, error).to_json()})

    async def _stop(self) -> None:
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _answer(self, message: Mapping[str, Any]) -> None:
        # Waits where the driver is behind, which is what should happen then.
        data = json.dumps(message).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # the driver is gone, and so is soon this process
            while data:
                data = data[os.write(self._replies, data) :]


if __name__ == "__main__":
    main()
