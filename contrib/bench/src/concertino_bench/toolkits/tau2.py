"""Task sets of tau2-bench, and of domains that others write in its form: a toolkit, tasks, a policy.

A task is decided by what its `reward_basis` names: `metadata["digest"]` is the state after the golden calls (DB),
`"assertions"` what has to be the case (ENV_ASSERTION), `"actions"` the calls that have to be made (ACTION),
`"required"` what has to be said (COMMUNICATE), `"statements"` what a model judges (NL_ASSERTION). As published, a task
without a basis rests on state and facts.

The invariants: a task is loaded only if its golden calls can be carried out on the very database that its world uses;
and a task that they do not solve is never given as if they did: `left_out` names it with the reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import DataError, Task, TaskSet

from .airline import Airline
from .board import TaskBoard
from .drafts import plain
from .handset import settled
from .replaying import GoldenCall, ReplayedCalls, replay
from .retail import Retail
from .tau import LeftOut, airline_data, golden_calls, question, read_json
from .telecom import KEYS, Telecom
from .toolkit import Database, Toolkit
from .world import unmet, worlds

Data = dict[str, Any]


@dataclass(frozen=True)
class Domain:
    """A domain in the form of tau2-bench.

    Attributes:
        name: of the task set, such as "tau2/retail".
        toolkit: its tools; those of the simulated user are marked `by="user"`.
        read: reads the database from a folder; by default `db.json`.
        policies: files of the folder that make the policy, one below the other; those that are absent are left out.
    """

    name: str
    toolkit: type[Toolkit]
    read: Callable[[Path], Data] = lambda folder: dict(read_json(folder / "db.json"))
    policies: tuple[str, ...] = ("policy.md",)

    def tasks(
        self,
        path: str | Path,
        *,
        database: str | Path | None = None,
        file: str = "",
        user: str = "",
        turns: int = 30,
    ) -> Iterator[Task]:
        """The tasks of a folder that their golden calls solve.

        Args:
            path: with `tasks.json`, the policy and the database, as published.
            database: folder of the database, where it lies elsewhere.
            file: of the tasks; by default `tasks.json`, else `tasks_small.json`.
            user: role or name of the model in the pool that plays the user; without one, whoever is tested is told
                what the user wants, and has the user's tools too.
            turns: of the user, at most.

        Raises:
            DataError: a file is missing or wrong, or a golden call is unknown.
        """
        source = _Source(self, Path(path), str(Path(database or path).resolve()), file, user, turns)
        for row in source.rows():
            if isinstance(task := source.task(row), Task):
                yield task

    def left_out(self, path: str | Path, *, database: str | Path | None = None, file: str = "") -> list[LeftOut]:
        """The tasks of a folder that their golden calls do not solve, or that have nothing to be graded by.

        Raises:
            DataError: a file is missing or wrong, or a golden call is unknown.
        """
        source = _Source(self, Path(path), str(Path(database or path).resolve()), file)
        found = ((row, source.task(row)) for row in source.rows())
        return [LeftOut(str(row["id"]), reason) for row, reason in found if isinstance(reason, str)]

    def task_set(self, summary: str = "", *, file: str = "", source: str = "") -> TaskSet:
        """The task set, to be given by the hook `concertino_tasks`.

        Args:
            summary: one line.
            file, source: as in `TaskSet`.
        """
        summary = summary or f"tau2-bench's domain {self.name.rpartition('/')[2]}, from files of your own"
        return TaskSet(self.name, summary, self.tasks, worlds(self.toolkit_of), file, source)

    def toolkit_of(self, task: Task) -> Toolkit:
        """The toolkit of a task, in the task's first state before its calls."""
        meta = task.metadata
        return _with_changes(_open(self, meta["data"]), meta.get("data_changes"))


@dataclass(frozen=True)
class _Source:
    """A folder of tasks, and how they are to be given."""

    domain: Domain
    folder: Path
    data: str
    file: str = ""
    user: str = ""
    turns: int = 30

    @property
    def tasks_file(self) -> Path:
        if self.file:
            return self.folder / self.file
        small, whole = self.folder / "tasks_small.json", self.folder / "tasks.json"
        return small if small.is_file() and not whole.is_file() else whole

    def rows(self) -> list[Any]:
        rows = read_json(self.tasks_file)
        if not isinstance(rows, list) or not all(isinstance(row, dict) and "id" in row for row in rows):
            raise DataError(f"{self.tasks_file}: expected a list of tau2 tasks, each with an id")
        return rows

    def task(self, row: Mapping[str, Any]) -> Task | str:
        """The task of a row; or why it cannot be given."""
        where = f"{self.tasks_file}: task {row['id']!r}"
        criteria = row.get("evaluation_criteria") or {}
        try:
            basis = _basis(criteria)
            graded = _graded(criteria, basis)
            before, changes = _before(row), _data_changes(row)
        except (TypeError, LookupError, AttributeError) as error:
            raise DataError(f"{where}: {error!r}; expected a task in the form of tau2-bench") from error
        if not basis:
            return "it has nothing to be graded by"
        toolkit = _with_changes(_open(self.domain, self.data), changes)
        golden = golden_calls(criteria.get("actions") or [], toolkit, where)
        _check_functions((*before, *graded["assertions"]), toolkit, where)
        try:
            done, after = _replayed(toolkit, golden, before)
        except ValueError as error:
            raise DataError(f"{where}: {error}") from error
        failing = [reason for each in graded["assertions"] if (reason := unmet(after, each))]
        # Without golden calls nothing is said about how the assertions come to hold.
        if failing and golden:
            return f"its golden calls do not lead where it asserts: {failing[0]}"
        if "DB" in basis:
            graded["digest"] = done.digest
        return self._made(row, graded, golden, before, changes, done)

    def _made(
        self,
        row: Mapping[str, Any],
        graded: Mapping[str, Any],
        golden: Sequence[GoldenCall],
        before: Sequence[Data],
        changes: Data,
        done: ReplayedCalls,
    ) -> Task:
        policy, request, scenario = self._policy(), _request(row), _scenario(row)
        spoken = {"user": self.user, "turns": self.turns, "scenario": scenario} if self.user else {}
        asked = question(policy, "" if self.user else str(row.get("ticket") or request))
        metadata = {
            "domain": self.domain.name,
            "data": self.data,
            "initial": _open(self.domain, self.data).database.digest(),
            "policy": policy,
            "request": request,
            "golden": [call.to_json() for call in golden],
            "reads": False,
            "faults": list(done.faults),
            "before": [GoldenCall.of(call).to_json() for call in before],
            "data_changes": changes,
            **graded,
            **spoken,
            **({"grader": "judged-state"} if graded["statements"] else {}),
        }
        return Task(f"{self.domain.name}-{row['id']}", asked, (), "state", split="test", metadata=metadata)

    def _policy(self) -> str:
        files = [self.folder / name for name in self.domain.policies]
        return "\n\n".join(file.read_text(encoding="utf-8").strip() for file in files if file.is_file())


# -- a row -------------------------------------------------------------------------------------------------------------


def _basis(criteria: Mapping[str, Any]) -> frozenset[str]:
    """What a task is decided by; nothing where it has no criteria at all."""
    if (given := criteria.get("reward_basis")) is not None:
        return frozenset(given)
    found = {"DB", "COMMUNICATE"} if criteria.get("actions") or criteria.get("communicate_info") else set[str]()
    # Statements alone: as published it would be right whatever is done.
    return frozenset(found or ({"NL_ASSERTION"} if criteria.get("nl_assertions") else ()))


def _graded(criteria: Mapping[str, Any], basis: frozenset[str]) -> Data:
    """What the grader compares with, but for the digest."""

    def of(part: str, name: str) -> list[Any]:
        return list(criteria.get(name) or []) if part in basis else []

    assertions = [
        {
            "name": each["func_name"],
            "arguments": each.get("arguments") or {},
            "expected": each.get("assert_value", True),
        }
        for each in of("ENV_ASSERTION", "env_assertions")
    ]
    actions = [
        {"name": each["name"], "arguments": each.get("arguments") or {}, "compare": each.get("compare_args")}
        for each in of("ACTION", "actions")
    ]
    return {
        "required": of("COMMUNICATE", "communicate_info"),
        "assertions": assertions,
        "actions": actions,
        "statements": of("NL_ASSERTION", "nl_assertions"),
    }


def _before(row: Mapping[str, Any]) -> list[Data]:
    """The calls that make a task's first state: those that initialise it, and then those of its history."""
    state = row.get("initial_state") or {}
    history = [
        {"name": call["name"], "arguments": call["arguments"]}
        for message in state.get("message_history") or []
        for call in message.get("tool_calls") or []
    ]
    first = [
        {"name": action["func_name"], "arguments": action["arguments"]}
        for action in state.get("initialization_actions") or []
    ]
    return [*first, *history]


def _data_changes(row: Mapping[str, Any]) -> Data:
    """What a task's first state has that the database has not."""
    data = (row.get("initial_state") or {}).get("initialization_data") or {}
    return {**(data.get("agent_data") or {}), **(data.get("user_data") or {})}


def _request(row: Mapping[str, Any]) -> str:
    """What the user wants: the scenario's parts, one below the other."""
    told = (row.get("user_scenario") or {}).get("instructions") or row.get("ticket") or ""
    if isinstance(told, Mapping):
        parts = [told.get(name) for name in ("known_info", "reason_for_call", "task_instructions")]
        told = "\n\n".join(str(part).strip() for part in parts if part)
    return str(told)


def _scenario(row: Mapping[str, Any]) -> str:
    """What the simulated user is told: all of it, also who the user is and what the user does not know."""
    scenario = row.get("user_scenario") or {}
    told = scenario.get("instructions") or row.get("ticket") or ""
    parts = {"persona": scenario.get("persona")}
    if isinstance(told, Mapping):
        names = ("reason_for_call", "known_info", "unknown_info", "task_instructions")
        parts |= {name: told.get(name) for name in names}
    else:
        parts["instructions"] = told
    history = [
        f"{message['role']}: {message['content']}"
        for message in (row.get("initial_state") or {}).get("message_history") or []
        if message.get("content") and message.get("role") in ("user", "assistant")
    ]
    parts["said before"] = "\n".join(history)
    return "\n\n".join(f"{name.replace('_', ' ')}: {str(text).strip()}" for name, text in parts.items() if text)


def _check_functions(calls: Sequence[Mapping[str, Any]], toolkit: Toolkit, where: str) -> None:
    known = toolkit.functions()
    unknown = next((call["name"] for call in calls if call["name"] not in known), None)
    if unknown is not None:
        raise DataError(f"{where}: it uses {unknown!r}, which the toolkit {toolkit.name or type(toolkit)} has not")


def _replayed(toolkit: Toolkit, golden: Sequence[GoldenCall], before: Sequence[Data]) -> tuple[ReplayedCalls, Toolkit]:
    """The golden calls carried out, and a toolkit in the state after them."""
    done = replay(toolkit, golden, before=before)
    after = toolkit.fresh()
    for call in (*map(GoldenCall.of, before), *golden):
        after.call(call.name, call.arguments)
    return done, after


# -- databases ---------------------------------------------------------------------------------------------------------


# A database of megabytes serves hundreds of tasks; runs act in `fresh()` copies, so it is safe to share.
@lru_cache(maxsize=8)
def _open(domain: Domain, data: str) -> Toolkit:
    """The toolkit of a domain on the data of a folder, read once."""
    return domain.toolkit(Database(domain.read(Path(data))))


def _with_changes(toolkit: Toolkit, changes: Mapping[str, Any] | None) -> Toolkit:
    return type(toolkit)(_merged(toolkit.state(), changes)) if changes else toolkit


def _merged(data: Any, changes: Any) -> Any:
    if not (isinstance(data, dict) and isinstance(changes, Mapping)):
        return plain(changes)
    return {**data, **{key: _merged(data.get(key), value) for key, value in changes.items()}}


def _airline(folder: Path) -> Data:
    whole = folder / "db.json"
    return dict(read_json(whole)) if whole.is_file() else airline_data(folder)


def _board(folder: Path) -> Data:
    inbox = folder / "user_db.json"
    return {**read_json(folder / "db.json"), **(read_json(inbox) if inbox.is_file() else {})}


def _telecom(folder: Path) -> Data:
    tables = _toml(folder / "db.toml")
    try:
        keyed = {name: {row[key]: _completed(name, row) for row in tables.get(name, ())} for name, key in KEYS.items()}
    except (TypeError, LookupError) as error:
        raise DataError(f"{folder / 'db.toml'}: {error!r}; expected tables {', '.join(KEYS)} with ids") from error
    return {**keyed, **settled(_toml(folder / "user_db.toml"))}


def _completed(table: str, row: Data) -> Data:
    """A row with what the file may leave out."""
    defaults: Data = {
        "lines": {"data_refueling_gb": 0.0, "data_used_gb": 0.0, "roaming_enabled": False},
        "customers": {"line_ids": [], "bill_ids": []},
        "bills": {"line_items": []},
    }
    return {**plain(defaults.get(table, {})), **row}


def _toml(file: Path) -> Data:
    try:
        # Dates as text: a state is JSON data.
        return dict(_texts(tomllib.loads(file.read_text(encoding="utf-8"))))
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}; give the folder that holds it as path") from error
    except ValueError as error:
        raise DataError(f"{file}: invalid TOML: {error}") from error


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


AIRLINE = Domain("tau2/airline", Airline, _airline)
MOCK = Domain("tau2/mock", TaskBoard, _board)
RETAIL = Domain("tau2/retail", Retail)
TELECOM = Domain("tau2/telecom", Telecom, _telecom, ("main_policy.md", "tech_support_manual.md"))


def task_sets() -> list[TaskSet]:
    """`tau2/airline`, `tau2/mock`, `tau2/retail` and `tau2/telecom`."""
    domains = (AIRLINE, MOCK, RETAIL, TELECOM)
    return [
        domain.task_set(
            file=f"the folder data/tau2/domains/{domain.name.removeprefix('tau2/')}",
            source="github.com/sierra-research/tau2-bench, MIT",
        )
        for domain in domains
    ]
