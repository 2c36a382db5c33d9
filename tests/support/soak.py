"""Tests that take more than two minutes: they can be resumed, and their figures are kept in a file.

`make soak` runs the tests marked `soak`. After each one, `.make/soak.json` gets its outcome, its seconds and what it
recorded with pytest's `record_property`. A test that passed is left out of the next run, until a file of the source,
its own file or a variable `CONCERTINO_*` changes, or the record is deleted. So a run that was interrupted continues
where it stopped, and a test that passed with 10 kills is not taken for one with 50.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tree import ROOT, tree_files

RECORD = ROOT / ".make" / "soak.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a test of this module name a record of its own."""
    parser.addini("soak_record", "the file with the figures of tests marked `soak`", default=str(RECORD))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has passed already."""
    known = _read(config)
    done = [item for item in items if item.get_closest_marker("soak") and _passed(item, known.get(item.nodeid))]
    if done:
        items[:] = [item for item in items if item not in done]
        config.hook.pytest_deselected(items=done)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Record a test's outcome and figures as soon as it has ended."""
    report: pytest.TestReport = yield
    if item.get_closest_marker("soak") and (call.when == "call" or not report.passed):
        entry = {
            "outcome": report.outcome,
            "seconds": round(call.duration, 1),
            "ended": time.strftime("%Y-%m-%d %H:%M:%S%z"),
            "source": _conditions(item),
            "figures": dict(item.user_properties),
        }
        _write(item.config, {**_read(item.config), item.nodeid: entry})
    return report


def _passed(item: pytest.Item, entry: dict[str, Any] | None) -> bool:
    return entry is not None and entry["outcome"] == "passed" and entry["source"] == _conditions(item)


def _conditions(item: pytest.Item) -> str:
    """A hash of all that an outcome depends on."""
    given = sorted(each for each in os.environ.items() if each[0].startswith("CONCERTINO_"))
    return hashlib.sha256(f"{_source()} {given}".encode() + item.path.read_bytes()).hexdigest()[:16]


@cache
def _source() -> str:
    """A hash of every Python file in the tree's packages."""
    digest = hashlib.sha256()
    for file in sorted(tree_files()):
        if file.suffix == ".py" and {"sdk", "src"} & set(file.relative_to(ROOT).parts):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _read(config: pytest.Config) -> dict[str, Any]:
    file = Path(config.getini("soak_record"))
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}


def _write(config: pytest.Config, entries: dict[str, Any]) -> None:
    file = Path(config.getini("soak_record"))
    file.parent.mkdir(exist_ok=True)
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    temporary.replace(file)
