"""Evaluations as TOML files, and systems as tables or as one line of a command.

The invariant: what a file or a line says is checked against one schema before anything is made of it, so a wrong type
or a misspelt key is an error of the file, with its place, and never a fault in the middle of a run.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from concertino import Budget, BudgetError, Sampling, Shortlist, UsageError
from concertino.core.trust import require
from concertino.schema import compile_schema, explain, suggestion

from concertino_bench.tasks.system import System, with_counterfactuals
from concertino_bench.tasks.task import TaskSet
from concertino_bench.tasks.unseen import parse_drawn

from .evaluation import Evaluation, Selection

_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNT = {"type": "integer", "minimum": 1}
_AMOUNT = {"type": "number", "minimum": 0}


def _table(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_SAMPLING = _table(
    temperature=_AMOUNT,
    top_p={"type": "number", "minimum": 0, "maximum": 1},
    max_tokens=_COUNT,
    seed={"type": "integer"},
    stop=_TEXTS,
)
SYSTEM = _table(
    ("name",),
    name=_TEXT,
    strategy=_TEXT,
    model=_TEXT,
    only=_TEXTS,
    offer=_TEXTS,
    eager={"type": "boolean"},
    shortlist={"type": ["string", "object"]},
    roles={"type": "object", "additionalProperties": _TEXT},
    sampling=_SAMPLING,
    options={"type": "object"},
    summary={"type": "string"},
)
"""A table [[systems]]."""
TASKS = _table(
    ("set",),
    set=_TEXT,
    options={"type": "object"},
    limit=_COUNT,
    seed={"type": "integer"},
    skip_bad={"type": "integer", "minimum": 0},
    shots={"type": "integer", "minimum": 0},
    shots_from=_TEXT,
)
"""A table [[tasks]]."""
FILE = _table(
    ("tasks", "systems"),
    title={"type": "string"},
    pool=_TEXT,
    samples=_COUNT,
    seed={"type": "integer"},
    grader=_TEXT,
    max_usd=_AMOUNT,
    unseen=_TEXTS,
    counterfactuals={"type": "boolean"},
    concurrency=_COUNT,
    budget={"type": "object"},
    tasks={"type": "array", "items": TASKS, "minItems": 1},
    systems={"type": "array", "items": SYSTEM, "minItems": 1},
)
"""The whole file."""


@dataclass(frozen=True)
class EvaluationFile:
    """What a TOML file of an evaluation says, beside the evaluation itself.

    Attributes:
        pool: the pool file, None where there is none.
        concurrency: runs at once, None if the file has none.
    """

    evaluation: Evaluation
    pool: Path | None
    concurrency: int | None


def load_evaluation(path: str | Path, sets: Mapping[str, TaskSet]) -> EvaluationFile:
    """Read an evaluation from TOML.

    Args:
        sets: the task sets that are there, by name.

    Raises:
        UntrustedFile: on the command line, it could do harm, and was not trusted.
        UsageError: the file cannot be read, or says something that is not known; names near ones.
    """
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a TOML file: {error}") from error
    _check(data, FILE, f"{path} is not an evaluation")
    require(path, data, "document")
    selections = [
        make_selection(entry, sets, f"{path}, [[tasks]] {number}", path.parent)
        for number, entry in enumerate(data["tasks"], 1)
    ]
    systems = [
        make_system(entry, f"{path}, [[systems]] {number}", path.parent)
        for number, entry in enumerate(data["systems"], 1)
    ]
    try:
        budget = Budget(**data.get("budget", {}))
    except (TypeError, BudgetError) as error:
        raise UsageError(f"{path}, [budget]: {error}") from error
    plain: dict[str, Any] = {key: data[key] for key in ("title", "samples", "seed", "grader", "max_usd") if key in data}
    if "unseen" in data:
        plain["unseen"] = parse_drawn(",".join(data["unseen"]))
    if data.get("counterfactuals"):
        systems = with_counterfactuals(systems)
    pool = path.parent / data["pool"] if "pool" in data else None
    return EvaluationFile(Evaluation(selections, systems, budget=budget, **plain), pool, data.get("concurrency"))


def make_selection(entry: Mapping[str, Any], sets: Mapping[str, TaskSet], where: str, folder: Path) -> Selection:
    """A selection from a table.

    Args:
        where: for errors.
        folder: what relative paths count from.

    Raises:
        UsageError: no such set, or no such option of it.
    """
    _check(entry, TASKS, where)
    found = find_set(entry["set"], sets, where, folder)
    options = {
        key: folder / value if key in ("path", "folder") and isinstance(value, str) else value
        for key, value in entry.get("options", {}).items()
    }
    _check_options(found, options, where)
    shots_from = str(entry.get("shots_from", ""))
    # A split has no path, and a file counts from the evaluation's folder like every other one.
    beside = folder / shots_from
    return Selection(
        found,
        options,
        entry.get("limit"),
        entry.get("seed"),
        entry.get("skip_bad", 0),
        entry.get("shots", 0),
        str(beside) if shots_from and beside.exists() else shots_from,
    )


def find_set(name: str, sets: Mapping[str, TaskSet], where: str = "", folder: Path | None = None) -> TaskSet:
    """A task set by its name, or by the TOML file that declares it.

    Raises:
        UsageError: there is none; names near ones.
    """
    if name in sets:
        return sets[name]
    prefix = f"{where}: " if where else ""
    if name.endswith(".toml"):
        from concertino_bench.loaders.own import load_toml
        from concertino_bench.tasks.task import DataError

        try:
            return load_toml((folder or Path()) / name)
        except DataError as error:
            raise UsageError(f"{prefix}{error}") from error
    hint = suggestion(name, sets, "concertino bench tasks lists them")
    raise UsageError(f"{prefix}no task set {name!r}; {hint}")


def options_of(found: TaskSet) -> dict[str, bool]:
    """The options of a task set, and whether each is needed."""
    parameters = inspect.signature(found.load).parameters.values()
    return {
        each.name: each.default is inspect.Parameter.empty
        for each in parameters
        if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)
    }


def _check_options(found: TaskSet, options: Mapping[str, Any], where: str) -> None:
    known = options_of(found)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(found.load).parameters.values())
    for key in () if takes_any else options:
        if key not in known:
            hint = suggestion(key, known)
            raise UsageError(f"{where}: {found.name} has no option {key!r}; {hint}")
    if missing := [key for key, needed in known.items() if needed and key not in options]:
        raise UsageError(f"{where}: {found.name} needs the option {missing[0]}: {found.summary}")


def make_system(entry: Mapping[str, Any], where: str, folder: Path | None = None) -> System:
    """A system from a table: the fields of `System`, and `options` of its strategy.

    Args:
        where: for errors.
        folder: what paths among the options count from.

    Raises:
        UsageError: a field is malformed, or the strategy or its option is unknown.
    """
    from concertino.plugins import default_manager
    from concertino.strategies import DEFAULT_STRATEGY, load_strategy, strategy_by_name

    _check(entry, SYSTEM, where)
    name = entry.get("strategy", DEFAULT_STRATEGY)
    if name.endswith(".toml"):
        if entry.get("options"):
            raise UsageError(f"{where}: options of a strategy stand in its file; write them into {name}")
        return System(**_plain(entry), strategy=load_strategy((folder or Path()) / name), sampling=_sampling(entry))
    try:
        kind = strategy_by_name(name, default_manager().strategies())
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    known: dict[str, Field[Any]] = {each.name: each for each in fields(kind)} if is_dataclass(kind) else {}
    options = dict(entry.get("options", {}))
    if "boxed_answers" in known:
        options.setdefault("boxed_answers", True)  # what is graded is looked for there first
    for key, value in options.items():
        if key not in known:
            hint = suggestion(key, known)
            raise UsageError(f"{where}: {name} has no option {key!r}; {hint}")
        if folder is not None and key in ("profile", "workflow", "path") and isinstance(value, str):
            options[key] = str(folder / value)
        elif not _fits(known[key].default, value):
            raise UsageError(f"{where}: {key} = {value!r} of {name}: expected a value like {known[key].default!r}")
    return System(**_plain(entry), strategy=kind.from_json({"name": name, **options}), sampling=_sampling(entry))


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    shortlist = {"shortlist": Shortlist.parse(entry["shortlist"])} if "shortlist" in entry else {}
    return {k: v for k, v in entry.items() if k not in ("options", "strategy", "sampling")} | shortlist


def _sampling(entry: Mapping[str, Any]) -> Sampling | None:
    given = dict(entry.get("sampling", {}))
    return Sampling(**{**given, "stop": tuple(given.get("stop", ()))}) if given else None


def _fits(default: Any, value: Any) -> bool:
    """Whether a value may stand where a default stood."""
    # Such a default tells no type; the strategy itself checks the value.
    if default is MISSING or default is None:
        return True
    # Before the numbers: in Python, true is an int.
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, (int, float)):
        return isinstance(value, (int, float))
    if isinstance(default, (list, tuple)):
        return isinstance(value, (list, tuple))
    return not isinstance(default, str) or isinstance(value, str)


def _check(data: Mapping[str, Any], schema: dict[str, Any], where: str) -> None:
    validator = compile_schema(schema)
    if not validator.is_valid(data):
        raise UsageError(f"{where}: " + "; ".join(explain(validator.check(data), validator).splitlines()[:4]))
