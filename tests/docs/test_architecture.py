"""The page on architecture shows the walk of one question as `scripts/walk.py` takes it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from tree import ROOT

PAGE = ROOT / "docs/explanation/architecture.md"
ROW = re.compile(
    r"^\| (?:`(?P<file>[\w/]+\.py)` )?\| `(?P<function>[\w.]+)`(?P<mark> \*\(passes on\)\*)? \|", re.MULTILINE
)


@pytest.fixture(scope="module")
def hops() -> list[str]:
    """`file function`, with a mark behind those that only pass on, each once."""
    # In a process of its own: a profiler is set there, and it would see what other tests left running.
    done = subprocess.run(
        [sys.executable, "scripts/walk.py", "--json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    walk = json.loads(done.stdout)
    return [re.sub(r":\d+", "", hop) for hop in dict.fromkeys([*walk["to_model"], *walk["to_tool"]])]


def test_the_page_shows_every_hop_of_the_walk_and_no_other(hops: list[str]) -> None:
    shown, file = [], ""
    for row in ROW.finditer(PAGE.read_text(encoding="utf-8").partition("## One question")[2]):
        file = row["file"] or file
        shown.append(f"{file} {row['function']}{' (passes on)' if row['mark'] else ''}")
    assert list(dict.fromkeys(shown)) == hops


def test_at_most_two_hops_only_pass_on(hops: list[str]) -> None:
    assert sum(hop.endswith("(passes on)") for hop in hops) <= 2
