"""One application in four frameworks: ours does all of it on one page, and so do the others, in their newest releases.

The programs and the server of a script are in `benchmarks/frameworks/`. The others need a package index; what cannot
be had is skipped with the reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tree import ROOT

PROGRAM = ROOT / "benchmarks" / "frameworks" / "run.py"
PEERS = ("pydantic-ai", "langgraph", "openai-agents")


def figures(*options: str) -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--json", *options], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout))


def assert_whole(seen: dict[str, Any]) -> None:
    assert not seen["faults"], f"{seen['faults']}\n{seen.get('printed')}\n{seen.get('said')}"


@pytest.mark.slow
def test_ours_does_the_whole_application_in_sixty_lines_at_most() -> None:
    ours = figures("--here", "--repeat", "1")["concertino"]
    assert_whole(ours)
    assert ours["lines"] <= 60


@pytest.mark.soak
def test_each_framework_does_the_whole_application_and_none_in_fewer_lines(
    record_property: Callable[[str, object], None],
) -> None:
    found = figures("--repeat", "3")
    absent = {name: seen["skipped"] for name, seen in found.items() if "faults" not in seen}
    if set(absent) & {"concertino"} or len(absent) == len(PEERS):
        pytest.skip(f"not installed: {absent}")
    for name, seen in found.items():
        if name not in absent:
            assert_whole(seen)
            shown = ("versions", "lines", "cpu", "imports", "wall", "mb", "requests", "kb")
            record_property(name, {figure: seen[figure] for figure in shown})
    assert all(found["concertino"]["lines"] <= seen["lines"] for seen in found.values() if "lines" in seen)
    if absent:
        pytest.skip(f"ran, but for {absent}")
