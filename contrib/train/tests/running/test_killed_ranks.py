"""One of two processes that play ahead is killed: rollouts go on from their journals, and nothing is paid twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("ahead_ranks.py")
STEPS, GROUPS, SIZE, CALLS, STALENESS = 5, 2, 2, 2, 2
POINTS = max(1, int(os.environ.get("CONCERTINO_KILLS", "6")) // 2)
"""Trainings that are killed in each of the two processes."""
LAST = 80
"""A beat before the end of a training, in each process."""


def notes(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "notes").read_text().splitlines()]


def sampled_again(seen: list[dict[str, Any]]) -> Iterator[str]:
    """Turns that were sampled although a call of theirs, or of a later turn, had been made."""
    paid: dict[str, int] = {}
    for each in seen:
        if each["kind"] == "paid":
            paid[each["run"]] = max(each["turn"], paid.get(each["run"], 0))
        elif each["kind"] == "asked" and each["turn"] <= paid.get(each["run"], 0):
            yield f"{each['run']} turn {each['turn']}"


def trained_last(seen: list[dict[str, Any]]) -> Counter[str]:
    """The samples that the weights at the end have learnt from: a step that was taken again replaces the first one."""
    steps = {(each["rank"], each["step"]): each["samples"] for each in seen if each["kind"] == "taken"}
    return Counter(sample for samples in steps.values() for sample in samples)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_one_of_two_processes_is_killed_and_both_go_on(tmp_path: Path, record_property: Any) -> None:
    beats = [1 + number * LAST // POINTS for number in range(POINTS)]
    points = [str(beat + second) for beat in beats for second in (0, 1000)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    words = [sys.executable, str(SCRIPT), str(tmp_path), *points]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=3500, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads((tmp_path / "kills.json").read_text())
    record_property("kills", found)
    assert [each for each in found if not (each["died"] and each["ended"])] == []
    assert sum(each["resumed"] for each in found) > len(found)
    every = [f"{rank} {number} {sample}" for rank in (0, 1) for number in range(STEPS * GROUPS) for sample in (0, 1)]
    for point in points:
        seen = notes(tmp_path / point)
        assert trained_last(seen) == Counter(every), point
        assert max(each["oldest"] for each in seen if each["kind"] == "taken") <= STALENESS
        paid = [each for each in seen if each["kind"] == "paid"]
        assert set(Counter(each["key"] for each in paid).values()) == {1}, point
        assert set(Counter((each["run"], each["turn"]) for each in paid).values()) == {1}, point
        assert list(sampled_again(seen)) == [], point
        lines = [json.loads(line) for line in (tmp_path / point / "out" / "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
        assert {line["ahead/stale"] for line in lines} == {0}
