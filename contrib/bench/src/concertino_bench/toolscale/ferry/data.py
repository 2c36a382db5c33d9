"""The data of the ferry company: its database, and the tasks with their golden calls and the facts to be told.

Money is in whole euros, lengths in metres; today is `TODAY`. A task's `axis` is its kind: "look" changes nothing; "act"
is done as asked; "refuse" must not be done; "recover" meets a refusal of a tool on the way, and continues. Its `level`
is the number of things to do or to find out. A golden call with `fails` is refused by the tool and changes nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from concertino_bench.toolscale.rows import TaskRow

TODAY = "2026-06-10"

_FOLDER = Path(__file__).parent


def database() -> dict[str, Any]:
    """A new copy of the database."""
    data: dict[str, Any] = json.loads((_FOLDER / "database.json").read_text(encoding="utf-8"))
    return data


def task_rows() -> list[TaskRow]:
    """The tasks."""
    lines = (_FOLDER / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    return [TaskRow.from_json(json.loads(line)) for line in lines]
