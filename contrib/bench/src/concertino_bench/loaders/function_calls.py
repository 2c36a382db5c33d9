"""BFCL: questions that are answered with calls of functions, and the world in which they are called.

A task's metadata holds the row as published, in BFCL's own dialect: `category`, `functions`, `ground_truth` (per call
and argument the accepted values; `""` means that it may be left out; None in categories without gold), `turns` (lists
of messages). In multi-turn categories `ground_truth` is Python text, and `turn_calls` holds the same calls as data.

The functions do not exist: in a task's world each is a tool that says it was called, and the world keeps what was
called with which arguments. Those of `memory` and `web_search` act on a simulated memory and web (`simulated`); there
the gold is texts, one of which the answer has to mention, and the kind is "mention". The states that functions of
multi-turn categories change are simulated too (`machines`). Gold is never validated against its own schema, since some
of it is invalid there.

The invariants: no text of a file is executed; a function's dots become `_` where a provider wants it, and a tool's name
begins with a letter or digit, so two names that differ only there are refused.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import concertino as ct

from concertino_bench.machines import NEXT, Machines, first_turns, machines_of, not_simulated
from concertino_bench.machines.published import WHERE
from concertino_bench.tasks.task import DataError, Task

from .dialect import Tell, json_schema
from .row_values import brief
from .rows import DataRow, read_rows
from .simulated import BACKENDS, Memory, Web
from .streaming import DataWarning, Numbers, id_of, rest, split_of, stream

WITHOUT_GOLD = ("irrelevance", "live_irrelevance", "live_relevance")
"""Categories without gold: right is no call at all, but at least one for `live_relevance`."""

_LONGEST = 1_000_000
_FILE = re.compile(r"(?:BFCL_v\d+_)?(.+?)\.jsonl?(?:\.gz)?")
_KEPT = ("initial_config", "involved_classes", "path", "missed_function", "excluded_function", "scenario")
_DOCUMENTS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MemoryAPI_kv": "memory_kv",
    "MemoryAPI_rec_sum": "memory_rec_sum",
    "MemoryAPI_vector": "memory_vector",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
    "WebSearchAPI": "web_search",
}


def bfcl(
    *,
    path: str | Path,
    category: str = "",
    answers: str | Path = "",
    backend: str = "kv",
    dialect: str = "",
    programs: str | Path = "",
    one_by_one: bool = False,
    split: str = "",
) -> Iterator[Task]:
    """Tasks of the kind "calls"; of the kind "mention" in the categories `memory` and `web_search`.

    Args:
        path: one category's file, such as `BFCL_v4_parallel.json`: JSON Lines with `id`, `question`, `function`. In
            multi-turn categories the functions are read from the folder `multi_turn_func_doc` beside it.
        category: of the file; else the column `category`, else from the file's name.
        answers: the file with the gold, joined by id; else the column `ground_truth`, else the file of the same name
            in the folder `possible_answer` beside it.
        backend: of `memory`: "kv", "vector" or "rec_sum". The memory begins with what the user said in the earlier
            conversations, where the folder `memory_prereq_conversation` stands beside the file.
        dialect: how `call-match-official` reads outputs; kept in the metadata.
        programs: the folder of the published programs of multi-turn categories, from which fares and long texts are
            read; by default where the published repository has it. They are never run.
        one_by_one: of a question of several turns only the first stands in the question; the tool `next_request` gives
            the others, and `call-states` compares after each turn, as published.

    Returns:
        The tasks; a question of several turns has them numbered, unless they come one by one.

    Raises:
        DataError: a file or a row is wrong, gold is missing, or two names differ only in dots and underscores.
    """
    file = Path(path)
    beside = file.parent / "possible_answer" / file.name
    gold = _Gold(answers or beside) if answers or beside.is_file() else None
    if backend not in BACKENDS:
        raise DataError(f"backend={backend!r}; expected {', '.join(BACKENDS)}")
    # A list of ids that others' programs fill in, and no rows.
    if file.name.endswith("_format_sensitivity.json"):
        raise DataError(f"{file} holds the ids of tasks of other files, and no tasks; expected one category's file")
    documents = _Documents(file.parent / "multi_turn_func_doc")
    kept = {"dialect": dialect, "programs": _programs(file, programs), "one_by_one": one_by_one}
    source = _Source(file, gold, documents, backend, {key: value for key, value in kept.items() if value}, split)
    return stream(path, lambda row: _task(row, _category(row, file, category), source))


def world(task: Task) -> CallWorld:
    """A world in which the functions of a task can be called."""
    return TurnsWorld(task) if task.metadata.get("one_by_one") else CallWorld(task)


def first_request(turns: list[list[dict[str, str]]]) -> str:
    """What is asked where the turns come one by one."""
    return (
        f"{_said(turns[0])}\n\n(When this is done, call {NEXT}: further requests come one by one, until there is none.)"
    )


def _said(turn: list[dict[str, str]]) -> str:
    return "\n\n".join(message["content"] for message in turn)


def _programs(file: Path, given: str | Path) -> str:
    """The folder of the published programs; empty if it is not there.

    Raises:
        DataError: it was given and is no folder.
    """
    if given and not Path(given).is_dir():
        raise DataError(f"programs={given}: not a folder; expected {WHERE}")
    beside = file.parent.parent / "eval_checker" / "multi_turn_eval" / "func_source_code"
    found = Path(given) if given else beside
    return str(found.absolute()) if found.is_dir() else ""


@dataclass(frozen=True)
class _Source:
    """A file of tasks with all that is read beside it."""

    file: Path
    gold: _Gold | None
    documents: _Documents
    backend: str
    kept: Mapping[str, Any]
    split: str


class CallWorld:
    """The functions of one task as tools that record their calls.

    Functions that a later turn brings (`missed_function`) are there from the beginning, for a run has one question.
    """

    def __init__(self, task: Task) -> None:
        self._calls: list[dict[str, Any]] = []
        self._behind = _behind(task)
        tools = [_tool(function, self._record, lambda _: None) for function in task.metadata["functions"]]
        # Answers of this category are long on purpose.
        long = "long_context" in str(task.metadata.get("category") or "")
        self._tools = [replace(tool, max_chars=_LONGEST) for tool in tools] if long else tools

    def members(self) -> Sequence[ct.ToolSpec]:
        """One tool per function."""
        return self._tools

    def state(self) -> list[dict[str, Any]]:
        """The calls that ran, in the order in which they began: `{"name": …, "arguments": {…}}`."""
        return list(self._calls)

    def _record(self, name: str, arguments: Mapping[str, Any]) -> str:
        self._calls.append({"name": name, "arguments": dict(arguments)})
        return self._behind.call(name, arguments) if self._behind else "called"


class TurnsWorld(CallWorld):
    """The same, with requests that come one by one, and functions that are there only from their turn on."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._requests: list[list[dict[str, str]]] = task.metadata["turns"]
        self._turn, self._later = 0, first_turns(task)

    def members(self) -> Sequence[ct.ToolSpec]:
        """The functions, and the tool that gives the next request."""
        text = "Read the next request. Call it when the present one is done, or cannot be done; then do what it asks."
        # Calls of the same round keep their order, so what follows belongs to the next request.
        tools = [*super().members(), ct.ToolSpec(NEXT, text, {"type": "object"}, self._next, takes_mapping=True)]
        return [replace(tool, writes=True) for tool in tools]

    def _next(self, arguments: Mapping[str, Any]) -> str:
        self._calls.append({"name": NEXT, "arguments": {}})
        if self._turn + 1 >= len(self._requests):
            return "There is no further request. Give your final answer."
        self._turn += 1
        new = ", ".join(name for name, turn in self._later.items() if turn == self._turn)
        told = f"These functions can be called from now on: {new}. Use them for what could not be done." if new else ""
        return "\n\n".join(filter(None, (_said(self._requests[self._turn]), told))) or "(Nothing was said.)"

    def _record(self, name: str, arguments: Mapping[str, Any]) -> str:
        if self._later.get(name, 0) > self._turn:
            return json.dumps({"error": f"{name} cannot be called yet."})
        return super()._record(name, arguments)


def _behind(task: Task) -> Memory | Web | Machines | None:
    """What the functions of a task act on; None where they only say that they were called."""
    category = str(task.metadata.get("category") or "")
    if category.startswith("memory"):
        return Memory(task.metadata["backend"], task.metadata["said"])
    if category.startswith("web_search"):
        return Web(task.metadata["pages"], snippets="no_snippet" not in category)
    if "multi_turn" in category and not not_simulated(task):
        return machines_of(task)
    return None


def _tool(function: Mapping[str, Any], record: Callable[[str, Mapping[str, Any]], str], tell: Tell) -> ct.ToolSpec:
    """A function as a tool that hands its calls on."""
    name = function["name"]
    schema = json_schema(function.get("parameters") or {}, tell)
    text = str(function.get("description") or "").strip() or name
    # Arguments as one mapping: the names of parameters need not be names of Python.
    # Reading and writing calls of a memory in one round keep their order, so none is a mere read.
    return ct.ToolSpec(_tool_name(name), text, schema, partial(record, name), takes_mapping=True, retry_safe=True)


def _tool_name(name: str) -> str:
    """The name that a tool can have: `__get_users` is `get_users`."""
    return name.lstrip("_.-") or name


# -- a row -------------------------------------------------------------------------------------------------------------


def _task(row: DataRow, category: str, source: _Source) -> Task:
    name = id_of("bfcl", row, "id")
    turns = _turns(row)
    functions = _functions(row, source)
    value, pages = _ground_truth(row, name, category, source.gold)
    metadata: dict[str, Any] = {
        "category": category,
        "functions": functions,
        "ground_truth": value,
        "turns": turns,
    } | rest(row, *_KEPT)
    metadata |= {key: value for key, value in source.kept.items() if key == "dialect" or "multi_turn" in category}
    split = split_of(row, source.split)
    if category.startswith(("memory", "web_search")):
        metadata |= {"aliases": _texts(row, value)[1:]} | _acted_on(row, category, pages, source)
        return Task(name, _question(turns), (value[0],), "mention", split=split, metadata=metadata)
    if "multi_turn" in category and value is not None:
        metadata["turn_calls"] = _turn_calls(row, value, functions)
    asked = first_request(turns) if metadata.get("one_by_one") else _question(turns)
    task = Task(name, asked, (), "calls", split=split, metadata=metadata)
    # What comes one by one is compared so, where it can be.
    compared = metadata.get("one_by_one") and not not_simulated(task)
    return replace(task, metadata={**metadata, "grader": "call-states"}) if compared else task


def _texts(row: DataRow, value: Any) -> list[str]:
    if not value or not all(isinstance(text, str) for text in value):
        raise row.error(f"ground_truth is {brief(value)}; expected texts, one of which the answer mentions")
    return list(value)


def _acted_on(row: DataRow, category: str, pages: Any, source: _Source) -> dict[str, Any]:
    """What the functions of a task act on."""
    if category.startswith("web_search"):
        listed = pages if isinstance(pages, list) else []
        return {"pages": [page for page in listed if isinstance(page, dict)]}
    scenario = row.text("scenario", default="")
    return {"backend": source.backend, "said": list(source.documents.said(scenario))}


def _category(row: DataRow, file: Path, given: str) -> str:
    match = _FILE.fullmatch(file.name)
    return given or row.text("category", default="") or (match[1] if match else file.stem)


def _turns(row: DataRow) -> list[list[dict[str, str]]]:
    turns = row.items("question")
    # Some published files give the messages of a single turn without the outer list.
    if turns and all(isinstance(message, dict) for message in turns):
        turns = [turns]
    for turn in turns:
        for message in turn if isinstance(turn, list) else [turn]:
            texts = isinstance(message, dict) and isinstance(message.get("content"), str) and "role" in message
            if not texts:
                row.wrong("question", "a list of turns, each a list of {'role', 'content'}")
    if not any(turns):
        row.wrong("question", "at least one message")
    return turns


def _question(turns: list[list[dict[str, str]]]) -> str:
    texts = [_said(turn) for turn in turns]
    if len(texts) == 1:
        return texts[0]
    empty = "(Further functions can be called from here on.)"
    return "\n\n".join(f"Turn {number}: {text or empty}" for number, text in enumerate(texts, 1))


def _ground_truth(row: DataRow, name: str, category: str, gold: _Gold | None) -> tuple[Any, Any]:
    """The gold of a row, and the sources that it names."""
    value, source = row.data.get("ground_truth"), row.data.get("source")
    if value is None and gold is not None:
        value, source = gold.of(name) or (None, None)
    if value is None and category not in WITHOUT_GOLD:
        known = ", ".join(WITHOUT_GOLD)
        raise row.error(
            f"no gold for {name!r} of the category {category!r}; expected a column 'ground_truth', or a file with that "
            f"id: give answers=…, or a category without gold ({known})"
        )
    if value is not None and not isinstance(value, list):
        raise row.error(f"ground_truth is {brief(value)}; expected a list of calls: correct the row")
    return value, source


class _Gold:
    """The gold of a file, found by id; read on only as far as needed, since the two files have one order.

    What is given is not kept, but for one number. Where it is asked for again, which is what two rows of one id do,
    the file is read again.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._rows = read_rows(path)
        self._passed: dict[str, tuple[list[Any], Any]] = {}
        self._given = Numbers()
        self._again: _Gold | None = None

    def of(self, name: str) -> tuple[list[Any], Any] | None:
        """The gold of an id with the column `source`; None where there is none."""
        while name not in self._passed:
            # It was handed out and not kept; without this the rest of the file would be read in vain.
            if hash(name) in self._given:
                self._again = self._again or _Gold(self._path)
                return self._again.of(name)
            row = next(self._rows, None)
            if row is None:
                return None
            # Kept until it is asked for: rows that a filter leaves out let the two files run apart.
            self._passed[id_of("bfcl", row, "id")] = (row.items("ground_truth"), row.data.get("source"))
        self._given.add(hash(name))
        return self._passed.pop(name)


# -- functions ---------------------------------------------------------------------------------------------------------


class _Documents:
    """The functions of the classes of multi-turn rows, each file read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.of = cache(self._of)
        self.said = cache(self._said)

    def _said(self, scenario: str) -> tuple[str, ...]:
        """What the user said in the conversations before a memory task; nothing where their file is absent."""
        file = self.folder.parent / "memory_prereq_conversation" / f"memory_{scenario}.json"
        if not re.fullmatch(r"\w+", scenario) or not file.is_file():
            return ()
        return tuple(message["content"] for row in read_rows(file) for turn in _turns(row) for message in turn)

    def _of(self, name: str) -> tuple[Mapping[str, Any], ...]:
        stem = _DOCUMENTS.get(name)
        if stem is None:
            known = ", ".join(_DOCUMENTS)
            raise ValueError(f"involved_classes names {name!r}; expected some of {known}")
        return tuple(row.data for row in read_rows(self.folder / f"{stem}.json"))


def _functions(row: DataRow, source: _Source) -> list[dict[str, Any]]:
    if row.column("function"):
        value = row.data["function"]
        functions = [value] if isinstance(value, dict) else row.items("function")
    else:
        left_out = set(row.texts("excluded_function"))
        column = row.needed("involved_classes", "function")
        # The published rows leave open on which memory a task is tried.
        names = (f"MemoryAPI_{source.backend}" if name == "MemoryAPI" else name for name in row.texts(column))
        found = [function for name in names for function in source.documents.of(name)]
        functions = [dict(each) for each in found if each["name"] not in left_out]
    for function in functions:
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise row.error(f"a function is {brief(function)}; expected 'name', 'description' and 'parameters'")
        if not isinstance(function.get("parameters", {}), dict):
            raise row.error(f"the parameters of {function['name']!r} are not an object; expected a schema")
        try:
            # The schema is compiled now: a function that cannot be a tool is an error of its row, not of a run.
            _tool(function, lambda *_: "", partial(_warn, row, function["name"])).validator  # noqa: B018
        except ct.SpecError as error:
            raise row.error(f"function {function['name']!r} cannot be a tool ({error}); correct the row") from error
    _refuse_clashes(row, [function["name"] for function in functions])
    return functions


def _warn(row: DataRow, name: str, text: str) -> None:
    warnings.warn(f"{row.place}: function {name!r}: {text}", DataWarning, stacklevel=2)


def _refuse_clashes(row: DataRow, names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        # Providers allow no dots, and a call of the common name could mean either.
        other = seen.setdefault(_tool_name(name).replace(".", "_"), name)
        if other is not name:
            raise row.error(
                f"the functions {other!r} and {name!r} are one name where providers write '_' for '.'; expected names "
                "that differ: rename one"
            )


# -- multi-turn gold ---------------------------------------------------------------------------------------------------


def _turn_calls(row: DataRow, turns: list[Any], functions: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Gold calls as data, per turn; what is given by position gets the name that the function's schema has there."""
    order = {each["name"]: [*(each.get("parameters") or {}).get("properties", {})] for each in functions}
    missed = row.data.get("missed_function") or {}
    if not isinstance(missed, dict) or not all(isinstance(names, list) for names in missed.values()):
        row.wrong("missed_function", "lists of names by turn")
    if not all(isinstance(turn, list) for turn in turns):
        row.wrong("ground_truth", "a list of calls per turn")
    return [[_call(row, text, order) for text in turn] for turn in turns]


def _call(row: DataRow, text: Any, order: Mapping[str, list[str]]) -> dict[str, Any]:
    from concertino_bench.graders.call_reading import read_python_call

    try:
        call = read_python_call(str(text), order)
    except ValueError as error:
        raise DataError(
            f"{row.place}: ground_truth holds {brief(text)} ({error}); expected a call of literals, such as "
            "`cd(folder='a')`: correct the row"
        ) from None
    return {"name": call.name, "arguments": dict(call.arguments)}
