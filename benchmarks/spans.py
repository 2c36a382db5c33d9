"""What spans cost: the CPU time of sending a run to OpenTelemetry, beside that of the run.

    python benchmarks/spans.py [--json] [--quick]

A shipper sends each run, while it goes on, to a receiver in another process. The cost of spans is the CPU time of the
shipper's thread: reading the trace, folding, encoding, packing and requests. That of the run is the rest of the
process. The bar is 3 % of a run that is led by a model in this process: the tiny conductor, and the simulated experts
of the demo. Beside it stands the harshest case, a run whose model and tools take no time at all: there, the share is
that of the bookkeeping alone, and has no bar.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import concertino as ct
from concertino.testing import ScriptedModel, fake_tool
from concertino_otel.options import Options
from concertino_otel.shipping import Shipper
from concertino_toy import conductor, demo

BAR = 0.03
_RECEIVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
CALLS = 50
ROUNDS = 4


def led_run(folder: str) -> ct.Run:
    """A run of the demo's pool, led by the tiny conductor."""
    pool = ct.Pool(demo.demo_members(0))
    leader = ct.Orchestrator("toy/conductor", conductor.strategy())
    return leader.run_sync(demo.demo_question(0)[0], pool=pool, trace=folder, run_id="measured")


def bare_run(folder: str) -> ct.Run:
    """A run of 200 calls whose model and tool take no time."""
    calls = [("look", {"number": number}) for number in range(CALLS)]
    model = ScriptedModel(*[calls] * ROUNDS, [("final_answer", {})], "<answer>x</answer>")
    tool = fake_tool("look", returns="seen")
    leader = ct.Orchestrator(model, ct.ParallelRounds(max_parallel=CALLS), duplicates="run")
    return leader.run_sync("q", pool=ct.Pool.of(tool), trace=folder, run_id="measured")


class Measured(Shipper):
    """A shipper that knows how much CPU time its thread has used."""

    used = 0.0

    def _work(self) -> None:
        super()._work()
        self.used = time.thread_time()


def cpu(make: Any, url: str) -> tuple[float, float]:
    """Seconds of CPU of one run without sending, and of sending it."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        shipper = Measured(Options(url, exit_seconds=30))
        shipper.ship(Path(folder) / "measured.trace.jsonl")
        make(folder)
        assert shipper.close(), "the receiver has not taken everything"
        return time.process_time() - began - shipper.used, shipper.used


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    receiver = subprocess.Popen([sys.executable, "-c", _RECEIVER], stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    url = f"http://127.0.0.1:{int(receiver.stdout.readline())}"
    rows = []
    try:
        for name, make, bar in (
            ("led by the tiny conductor", led_run, BAR),
            ("200 calls that take no time", bare_run, 0),
        ):
            cpu(make, url)  # imports
            pairs = [cpu(make, url) for _ in range(2 if options.quick else 7)]
            alone, spans = (statistics.median(each) for each in zip(*pairs, strict=True))
            rows.append({"run": name, "cpu_s": alone, "spans_s": spans, "share": spans / alone, "bar": bar})
    finally:
        receiver.terminate()
        receiver.wait()
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        bar = f"; the bar is {row['bar']:.0%}" if row["bar"] else ""
        print(
            f"{row['run']}: {row['cpu_s'] * 1000:.0f} ms of CPU, its spans {row['spans_s'] * 1000:.1f} ms: "
            f"{row['share']:.1%}{bar}"
        )


if __name__ == "__main__":
    main()
