"""The airline tasks of tau-bench, from files of your own: state tasks with their policy and golden calls.

A task's answer is a state: `metadata["digest"]` is that of the database after the golden calls, `metadata["golden"]`
those calls, `metadata["required"]` what has to be said. tau-bench recorded the digests.

The invariant: a task is loaded only if the database is the one that the recorded digests belong to, and its golden
calls can be carried out on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from concertino_bench.tasks.task import DataError, Task, TaskSet

from .airline import Airline
from .replaying import Calls, GoldenCall, replay
from .toolkit import Database, Toolkit
from .world import worlds

AIRLINE_DIGEST = "4a02dcbc0e3ace4d398988d60a33e73afad4d201deb426303159f086cadad20f"
"""Digest of the airline's database to which the recorded digests of tau-bench belong."""
_TABLES = ("flights", "reservations", "users")
TRANSFER = "transfer_to_human_agents"


class LeftOut(NamedTuple):
    """A task that the database cannot decide, and why."""

    id: str
    reason: str


# -- tau-bench ---------------------------------------------------------------------------------------------------------


def airline_tasks(path: str | Path, *, policy: str = "", initial: str = AIRLINE_DIGEST) -> Iterator[Task]:
    """The airline tasks of tau-bench.

    Those in which something has to be said have no recorded digest upstream; theirs comes from the golden calls, and
    `metadata["recorded"]` says so.

    Args:
        path: a folder with `flights.json`, `reservations.json`, `users.json` and `tasks_golden.jsonl`.
        policy: what the airline allows; by default the text of `policy.md` in the folder, if there is one.
        initial: the digest that the database must have.

    Raises:
        DataError: a file is missing or wrong, the database is another one, or a golden call is unknown.
    """
    folder = Path(path)
    # The digest first: recorded states belong to one version of the database, and would all fail on another.
    toolkit = _open(str(folder.resolve()), initial)
    policy = policy or _policy(folder)
    for line, row in _rows(folder / "tasks_golden.jsonl"):
        where = f"{folder / 'tasks_golden.jsonl'}:{line}"
        wanted = {"task_id": int, "instruction": str, "golden_actions": list}
        wrong = [name for name, kind in wanted.items() if not isinstance(row.get(name), kind)]
        if wrong:
            raise DataError(f"{where}: {', '.join(wrong)} missing or of another type; expected a row of tau-bench")
        golden = golden_calls(row["golden_actions"], toolkit, where)
        recorded = row.get("gt_data_hash") or ""
        meta = {
            "domain": "tau/airline",
            "data": str(folder.resolve()),
            "initial": toolkit.database.digest(),
            "policy": policy,
            "request": row["instruction"],
            "digest": recorded or replay(toolkit, golden).digest,
            "recorded": bool(recorded),
            "golden": [call.to_json() for call in golden],
            "required": list(row.get("outputs") or []),
            "reads": False,
        }
        request = question(policy, row["instruction"])
        yield Task(f"tau/airline-{row['task_id']}", request, (), "state", split="test", metadata=meta)


# -- what both share ---------------------------------------------------------------------------------------------------


def airline_data(folder: Path) -> dict[str, Any]:
    """The airline's database, a file for each table."""
    return {name: read_json(folder / f"{name}.json") for name in _TABLES}


# A database of megabytes serves hundreds of tasks; runs act in `fresh()` copies, so it is safe to share.
@lru_cache(maxsize=8)
def _open(data: str, initial: str = "") -> Toolkit:
    """The airline on the data of a folder, read once.

    Raises:
        DataError: the data are missing, or not those that were expected.
    """
    toolkit = Airline(Database(airline_data(Path(data))))
    found = toolkit.database.digest()
    if initial and found != initial:
        raise DataError(
            f"{data}: the database has the digest {found}, expected {initial}: the recorded states belong to another "
            "version of it; take the data of the commit that they were recorded with"
        )
    return toolkit


def _toolkit(task: Task) -> Toolkit:
    """The toolkit of a task."""
    return _open(task.metadata["data"], task.metadata["initial"])


def golden_calls(actions: Calls, toolkit: Toolkit, where: str) -> list[GoldenCall]:
    """The golden calls, without a hand-over to a person.

    Raises:
        DataError: one is not a call, or of a function that the toolkit has not.
    """
    try:
        calls = [GoldenCall.of(action) for action in actions]
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error
    unknown = [call.name for call in calls if call.name not in toolkit.functions()]
    if unknown:
        raise DataError(f"{where}: golden call of {unknown[0]!r}; expected one of {', '.join(toolkit.functions())}")
    # A hand-over changes nothing, so no final state can show whether it was made.
    return [call for call in calls if call.name != TRANSFER]


def question(policy: str, request: str) -> str:
    """What a run is asked: to serve a customer, whose request is known, or has to be asked for where it is empty."""
    head = f"Serve a customer with the tools that you have. Keep to this policy:\n\n{policy}\n\n" if policy else ""
    if not request:
        return f"{head}A customer is waiting. Talk with the customer until all is done; begin with a greeting."
    return f"{head}What the customer was told to want from you:\n\n{request}"


def _policy(folder: Path) -> str:
    for file in (folder / "policy.md", folder / "main_policy.md"):
        if file.is_file():
            return file.read_text(encoding="utf-8").strip()
    return ""


def read_json(file: Path) -> Any:
    """The content of a file.

    Raises:
        DataError: it cannot be read, or is not JSON.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}; give the folder that holds it as path") from error
    except ValueError as error:
        raise DataError(f"{file}: not JSON: {error}") from error


def _rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}; give the folder that holds it as path") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise DataError(f"{file}:{number}: not JSON: {error}") from error
            if not isinstance(row, dict):
                raise DataError(f"{file}:{number}: expected an object, got {type(row).__name__}")
            yield number, row


def task_sets() -> list[TaskSet]:
    """`tau/airline`."""
    return [TaskSet("tau/airline", "tau-bench's airline, from files of your own", airline_tasks, worlds(_toolkit))]
