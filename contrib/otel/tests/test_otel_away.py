"""A receiver that is away for a minute, while runs go on: nothing is lost, nothing is sent twice, nothing piles up."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, fake_tool
from concertino_otel.fold import SpanFold, spans_of
from concertino_otel.ids import span_id, trace_id
from concertino_otel.options import Options
from concertino_otel.shipping import Shipper
from waiting import until

from .otlp_receiver import assert_one_tree, receiving

AWAY = float(os.environ.get("CONCERTINO_OTEL_AWAY", "60"))
"""Seconds for which nobody takes spans."""
RUNS = 50
CALLS = 50
ROUNDS = 4
MOST_MEMORY = 20e6
"""Bytes that the process may grow by while spans wait."""


async def run_of_many_calls(folder: Path) -> Path:
    calls = [("look", {"number": number}) for number in range(CALLS)]
    model = ScriptedModel(*[calls] * ROUNDS, [("final_answer", {})], "<answer>x</answer>")
    leader = ct.Orchestrator(model, ct.ParallelRounds(max_parallel=CALLS), duplicates="run")
    run = await leader.run("q", pool=ct.Pool.of(fake_tool("look", returns="seen")), trace=folder)
    return Path(str(run.path))


def memory() -> int:
    """Bytes of this process that lie in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.soak
def test_while_a_receiver_is_away_for_a_minute_none_of_ten_thousand_spans_is_lost(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shipper = Shipper(Options(f"http://127.0.0.1:{port}", exit_seconds=60))
    asyncio.run(run_of_many_calls(tmp_path / "before"))  # what is made once is no growth
    began, before, paths = time.monotonic(), memory(), []
    for _ in range(RUNS):
        paths.append(asyncio.run(run_of_many_calls(tmp_path)))
        shipper.ship(paths[-1])
    until(lambda: time.monotonic() - began > AWAY / 2, "half of the time", AWAY)
    with receiving(port) as receiver:  # now it answers, and takes nothing
        receiver.away = True
        until(lambda: time.monotonic() - began > AWAY, "the time", AWAY + 60)
        grown = memory() - before
        assert not receiver.bodies
        receiver.away = False
        away = time.monotonic() - began
        expected: Counter[tuple[bytes, bytes]] = Counter()
        for path in paths:
            trace = ct.Trace.load(path)
            spans = spans_of(iter(trace.records), SpanFold())
            expected.update((trace_id(trace.run_id), span_id(trace.run_id, span.key)) for span in spans)
        assert expected.total() > 10_000
        until(lambda: len(receiver.spans()) >= expected.total(), "all spans", 240)
        assert shipper.close()
        got = receiver.spans()
    record_property("seconds away", round(away, 1))
    record_property("spans", expected.total())
    record_property("bytes grown", grown)
    assert Counter((span.trace_id, span.span_id) for span in got) == expected
    for path in paths[:3]:
        known = trace_id(ct.Trace.load(path).run_id)
        assert_one_tree([span for span in got if span.trace_id == known])
    assert grown < MOST_MEMORY
