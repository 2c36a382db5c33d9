"""Nodes die again and again, and the driver once: every run ends as it would have, and nothing is paid for twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
import ray_driver
from concertino.rollouts import InProcess
from rollout_work import PaidRuns, billed

DRIVER = Path(ray_driver.__file__)
RUNS = int(os.environ.get("CONCERTINO_TEST_RAY_RUNS", "300"))


both_ways = pytest.mark.parametrize("journals", ["shared", "streamed"])


def started(place: str, folder: Path, count: int, seconds: float, journals: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(DRIVER), place, str(folder), str(count), str(seconds), journals])


def ended(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / "results.jsonl"
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {row["id"]: row for row in rows}


def wait_for(ready: Callable[[], bool], driver: subprocess.Popen[bytes], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not ready():
        assert driver.poll() is None, f"the driver ended with {driver.returncode}"
        assert time.monotonic() < until
        time.sleep(0.05)


def check(folder: Path, count: int) -> None:
    """Everything ended as in this process, and what a provider saw is what may be billed."""

    async def plain() -> dict[str, str]:
        async with InProcess(PaidRuns(folder / "plain.log", 0.0)) as place:
            return {each.id: each.stop async for each in place.submit(ray_driver.orders(folder / "plain", count))}

    found = ended(folder)
    assert {name: row["stop"] for name, row in found.items()} == asyncio.run(plain())
    for call, seen in billed(folder / "log").items():
        # In doubt is what a death left begun: it is asked again under its key only where that is allowed.
        assert seen.count("START") == 1 or call.startswith("keyed"), (call, seen)
    for row in found.values():
        trace = ct.Trace.load(row["trace"])
        assert trace.finished
        results = [record["id"] for record in trace.of_kind("result")]
        assert len(results) == len(set(results)), row["trace"]


@both_ways
@pytest.mark.slow
def test_a_second_driver_goes_on_where_a_killed_one_was(nodes: Any, tmp_path: Path, journals: str) -> None:
    place = f"ray://{nodes.address}"
    first = started(place, tmp_path, 40, 0.2, journals)
    try:
        wait_for(lambda: len(ended(tmp_path)) >= 5, first)
    finally:
        first.kill()
        first.wait()
    before = len(ended(tmp_path))
    assert before < 40
    assert started(place, tmp_path, 40, 0.2, journals).wait(120) == 0
    check(tmp_path, 40)


@both_ways
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_node_is_killed_every_two_seconds_and_the_driver_once(
    nodes: Any, tmp_path: Path, journals: str, record_property: Any
) -> None:
    place, kills = f"ray://{nodes.address}", []
    driver, killed = started(place, tmp_path, RUNS, 0.3, journals), False
    try:
        wait_for(lambda: bool(ended(tmp_path)), driver)
        began = time.monotonic()
        while driver.poll() is None:
            if len(kills) * 2 <= time.monotonic() - began:
                kills.append(time.time())
                # Beside each other: both take seconds where the processors are busy.
                dying = threading.Thread(target=nodes.kill)
                dying.start()
                nodes.add()
                dying.join()
            if not killed and len(ended(tmp_path)) > RUNS // 3:
                driver.send_signal(signal.SIGKILL)
                driver.wait()
                driver, killed = started(place, tmp_path, RUNS, 0.3, journals), True
            time.sleep(0.05)
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 0
    assert killed
    check(tmp_path, RUNS)
    # The last node that was killed before a run was taken over is the latest that can have been the reason.
    taken = [path.stat().st_mtime for path in (tmp_path / "traces").glob("*.epoch-?")]
    recovery = [when - max(kill for kill in kills if kill <= when) for when in taken]
    figures = {
        "journals": journals,
        "runs": RUNS,
        "kills": len(kills),
        "taken over": len(taken),
        "seconds": round(time.monotonic() - began, 1),
        "longest recovery": round(max(recovery), 2),
    }
    record_property("figures", json.dumps(figures))
    sys.stdout.write(json.dumps(figures))
    assert max(recovery) <= 10
