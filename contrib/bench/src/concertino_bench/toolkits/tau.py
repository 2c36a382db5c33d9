"""Task sets of tau-bench and tau2-bench, from files of your own: state tasks with their policy and golden calls.

A task's answer is a state: `metadata["digest"]` is that of the database after the golden calls, `metadata["golden"]`
those calls, `metadata["required"]` what has to be said. tau-bench recorded the digests, and loading compares the first
state with the one they belong to; tau2-bench has none, so they are worked out from the golden calls.

The invariants: a task is loaded only if its golden calls can be carried out on the very database that its world uses;
and a task that a database cannot decide is never given as if it could: `left_out` names it with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from concertino_bench.tasks.task import DataError, Task, TaskSet

from .airline import Airline
from .board import TaskBoard
from .drafts import plain
from .replaying import Calls, GoldenCall, replay
from .toolkit import Database, Toolkit
from .world import worlds

AIRLINE_DIGEST = "4a02dcbc0e3ace4d398988d60a33e73afad4d201deb426303159f086cadad20f"
"""Digest of the airline's database to which the recorded digests of tau-bench belong."""
_TABLES = ("flights", "reservations", "users")
_TRANSFER = "transfer_to_human_agents"


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
    toolkit = _open("tau/airline", str(folder.resolve()), initial)
    policy = policy or _policy(folder)
    for line, row in _rows(folder / "tasks_golden.jsonl"):
        where = f"{folder / 'tasks_golden.jsonl'}:{line}"
        wanted = {"task_id": int, "instruction": str, "golden_actions": list}
        wrong = [name for name, kind in wanted.items() if not isinstance(row.get(name), kind)]
        if wrong:
            raise DataError(f"{where}: {', '.join(wrong)} missing or of another type; expected a row of tau-bench")
        golden = _golden(row["golden_actions"], toolkit, where)
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
        request = _question(policy, row["instruction"])
        yield Task(f"tau/airline-{row['task_id']}", request, (), "state", split="test", metadata=meta)


# -- tau2-bench --------------------------------------------------------------------------------------------------------


def tau2_tasks(path: str | Path, *, domain: str = "mock", database: str | Path | None = None) -> Iterator[Task]:
    """Tasks of tau2-bench that the final state of the database, and what is said, can decide.

    Args:
        path: the domain's folder, with `tasks_small.json` or `tasks.json`, with `policy.md` and, for the mock domain,
            `db.json`.
        domain: "mock" or "airline".
        database: folder of the airline's database, which is that of tau-bench.

    Raises:
        DataError: a file is missing or wrong, the domain is unknown, or a golden call is.
    """
    folder = Path(path)
    name = f"tau2/{domain}"
    if name not in _DOMAINS:
        known = ", ".join(each.removeprefix("tau2/") for each in _DOMAINS if each.startswith("tau2/"))
        why = f"; {_NO_WORLD[domain]}" if domain in _NO_WORLD else ""
        raise DataError(f"domain={domain!r}: there is no database tool for it here; expected one of {known}{why}")
    data = str(Path(database or folder).resolve())
    toolkit, policy = _open(name, data), _policy(folder)
    for row in _tau2_rows(folder):
        if not _undecided(row):
            yield _tau2_task(row, name, data, toolkit, policy, folder)


def left_out(path: str | Path) -> list[LeftOut]:
    """The tasks of a tau2-bench folder that a database cannot decide, with the reasons.

    Raises:
        DataError: the file is missing or wrong.
    """
    return [LeftOut(str(row["id"]), reason) for row in _tau2_rows(Path(path)) if (reason := _undecided(row))]


def _tau2_task(row: Mapping[str, Any], domain: str, data: str, toolkit: Toolkit, policy: str, folder: Path) -> Task:
    where = f"{_tau2_file(folder)}: task {row['id']!r}"
    first = _with_changes(toolkit, _data_changes(row))
    before = _before(row)
    golden = _golden(row["evaluation_criteria"]["actions"] or [], toolkit, where)
    try:
        done = replay(first, golden, before=before)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error
    request = _request(row)
    return Task(
        f"{domain}-{row['id']}",
        _question(policy, request),
        (),
        "state",
        split="test",
        metadata={
            "domain": domain,
            "data": data,
            "initial": toolkit.database.digest(),
            "policy": policy,
            "request": request,
            "digest": done.digest,
            "golden": [call.to_json() for call in golden],
            "required": list(row["evaluation_criteria"].get("communicate_info") or []),
            "reads": False,
            "faults": list(done.faults),
            "before": [GoldenCall.of(call).to_json() for call in before],
            "data_changes": _data_changes(row),
        },
    )


def _undecided(row: Mapping[str, Any]) -> str:
    """Why the database cannot decide a task; empty if it can."""
    criteria = row.get("evaluation_criteria") or {}
    basis = criteria.get("reward_basis")
    # tau2's reward is the product of the parts that `reward_basis` names.
    if basis is not None and "DB" not in basis:
        return f"its reward rests on {', '.join(basis)} and not on the database"
    if not criteria.get("actions") and "DB" not in (basis or ()):
        return "it has no golden actions, only assertions for a judge"
    # Such actions change a device of the simulated user, which no database shows.
    if any(action.get("requestor", "assistant") == "user" for action in criteria.get("actions") or []):
        return "its golden actions include those of a simulated user"
    if "ENV_ASSERTION" in (basis or ()) and any(
        asserted.get("env_type") == "user" for asserted in criteria.get("env_assertions") or []
    ):
        return "its reward rests on the state of a simulated user"
    return ""


def _before(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls that make a task's first state: those of its history, and those that initialise it."""
    state = row.get("initial_state") or {}
    history = [
        {"name": call["name"], "arguments": call["arguments"]}
        for message in state.get("message_history") or []
        for call in message.get("tool_calls") or []
        if call.get("requestor", "assistant") == "assistant"
    ]
    return [
        {"name": action["func_name"], "arguments": action["arguments"]}
        for action in state.get("initialization_actions") or []
        if action.get("env_type") == "assistant"
        # As in tau2: initialisation first, then the calls of the recorded conversation.
    ] + history


def _data_changes(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a task's first state has that the database has not."""
    data = (row.get("initial_state") or {}).get("initialization_data") or {}
    changes: dict[str, Any] = data.get("agent_data") or {}
    return changes


def _with_changes(toolkit: Toolkit, changes: Mapping[str, Any] | None) -> Toolkit:
    return type(toolkit)(_merged(toolkit.state(), changes)) if changes else toolkit


def _merged(data: Any, changes: Any) -> Any:
    if not (isinstance(data, dict) and isinstance(changes, Mapping)):
        return plain(changes)
    return {**data, **{key: _merged(data.get(key), value) for key, value in changes.items()}}


def _request(row: Mapping[str, Any]) -> str:
    """What the user wants: the scenario's parts, one below the other."""
    told = (row.get("user_scenario") or {}).get("instructions") or row.get("ticket") or ""
    if isinstance(told, Mapping):
        parts = [told.get(name) for name in ("known_info", "reason_for_call", "task_instructions")]
        told = "\n\n".join(str(part).strip() for part in parts if part)
    return str(told)


# -- what both share ---------------------------------------------------------------------------------------------------


def _airline_data(folder: Path) -> dict[str, Any]:
    return {name: _json(folder / f"{name}.json") for name in _TABLES}


_DOMAINS: dict[str, tuple[Callable[[Path], dict[str, Any]], type[Toolkit]]] = {
    "tau/airline": (_airline_data, Airline),
    "tau2/airline": (_airline_data, Airline),
    "tau2/mock": (lambda folder: _json(folder / "db.json"), TaskBoard),
}
_NO_WORLD = {"telecom": "its tasks are decided by a simulated phone, and not by the database"}


# A database of megabytes serves hundreds of tasks; runs act in `fresh()` copies, so it is safe to share.
@lru_cache(maxsize=8)
def _open(domain: str, data: str, initial: str = "") -> Toolkit:
    """The toolkit of a domain on the data of a folder, read once.

    Raises:
        DataError: the data are missing, or not those that were expected.
    """
    read, kind = _DOMAINS[domain]
    toolkit = kind(Database(read(Path(data))))
    found = toolkit.database.digest()
    if initial and found != initial:
        raise DataError(
            f"{data}: the database has the digest {found}, expected {initial}: the recorded states belong to another "
            "version of it; take the data of the commit that they were recorded with"
        )
    return toolkit


def _toolkit(task: Task) -> Toolkit:
    """The toolkit of a task of these sets, in the task's first state before its calls."""
    meta = task.metadata
    toolkit = _open(meta["domain"], meta["data"], meta["initial"])
    return _with_changes(toolkit, meta.get("data_changes"))


def _golden(actions: Calls, toolkit: Toolkit, where: str) -> list[GoldenCall]:
    """The golden calls, without a hand-over to a person."""
    try:
        calls = [GoldenCall.of(action) for action in actions]
    except ValueError as error:
        raise DataError(f"{where}: {error}") from error
    unknown = [call.name for call in calls if call.name not in toolkit.functions()]
    if unknown:
        raise DataError(f"{where}: golden call of {unknown[0]!r}; expected one of {', '.join(toolkit.functions())}")
    # A hand-over changes nothing, so no final state can show whether it was made.
    return [call for call in calls if call.name != _TRANSFER]


def _question(policy: str, request: str) -> str:
    head = f"Serve a customer with the tools that you have. Keep to this policy:\n\n{policy}\n\n" if policy else ""
    return f"{head}What the customer was told to want from you:\n\n{request}"


def _policy(folder: Path) -> str:
    for file in (folder / "policy.md", folder / "main_policy.md"):
        if file.is_file():
            return file.read_text(encoding="utf-8").strip()
    return ""


def _tau2_file(folder: Path) -> Path:
    small = folder / "tasks_small.json"
    return small if small.is_file() else folder / "tasks.json"


def _tau2_rows(folder: Path) -> list[Any]:
    file = _tau2_file(folder)
    rows = _json(file)
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "id" in row for row in rows):
        raise DataError(f"{file}: expected a list of tau2 tasks, each with an id")
    return rows


def _json(file: Path) -> Any:
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


def _tau2_airline(path: str | Path, *, database: str | Path | None = None) -> Iterator[Task]:
    return tau2_tasks(path, domain="airline", database=database)


def task_sets() -> list[TaskSet]:
    """`tau/airline`, `tau2/mock` and `tau2/airline`."""
    world = worlds(_toolkit)
    return [
        TaskSet("tau/airline", "tau-bench's airline, from files of your own", airline_tasks, world),
        TaskSet("tau2/mock", "tau2-bench's mock domain, from files of your own", tau2_tasks, world),
        TaskSet("tau2/airline", "tau2-bench's airline, from files of your own", _tau2_airline, world),
    ]
