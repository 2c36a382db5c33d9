"""API-Bank and TRAJECT-Bench: calls with the results that they had when the set was made.

In a task's world a tool gives the recorded result, errors of the real services included.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import Task

from .bad_rows import allowed_now
from .call_tasks import accepted_call, fitting, function, parameters_of, result, seen_in
from .row_values import brief
from .rows import DataRow, read_rows
from .streaming import DataWarning, distinct, id_of, rest, split_of, stream

# -- API-Bank ----------------------------------------------------------------------------------------------------------


def api_bank(*, path: str | Path, apis: str | Path = "", split: str = "") -> Iterator[Task]:
    """Tasks of the kind "calls": one for each call of a dialogue, asked with all that was said and called before it.

    Args:
        path: the folder of dialogues (`level-1-given-desc`), one file each with a turn in each row, or a file with a
            dialogue in each row, as `turns`. A turn has `role` (User, AI or API) and `text`, or `api_name`,
            `param_dict` and `result`.
        apis: descriptions: the published folder `apis` of Python files, which are read and not run, or a file with
            `name` and `info`; else the file `apis.jsonl` beside. Without it, a function takes what its calls have.
    """
    beside = Path(path).parent / "apis.jsonl"
    place = Path(apis) if apis else beside if beside.is_file() else None
    described = cache(lambda: _api_schemas(place) if place is not None else {})
    skipped = allowed_now()

    def rows() -> Iterable[DataRow]:
        return _dialogues(read_rows(path, skipped))

    return distinct(rows(), lambda row: _api_tasks(row, described, split), rows)


def _dialogues(rows: Iterable[DataRow]) -> Iterator[DataRow]:
    """One row per dialogue; of published files, the rows of a file are the turns of one."""
    begun: DataRow | None = None
    turns: list[Any] = []
    for row in rows:
        if row.column("turns"):
            yield row
            continue
        if begun is not None and begun.path != row.path:
            yield _dialogue(begun, turns)
            begun, turns = None, []
        begun = begun or row
        turns.append(row.data)
    if begun is not None:
        yield _dialogue(begun, turns)


def _dialogue(first: DataRow, turns: list[Any]) -> DataRow:
    return DataRow(first.path, first.line, first.number, {"id": Path(first.path).stem, "turns": list(turns)})


def _api_tasks(row: DataRow, described: Any, split: str) -> list[Task]:
    name, turns = id_of("api-bank", row, "id"), row.items("turns")
    calls = [(turn["api_name"], turn["param_dict"]) for turn in turns if _is_call(row, turn)]
    if not calls:
        return []
    known, unknown = described(), seen_in(calls)
    functions = []
    for api in dict.fromkeys(api for api, _ in calls):
        text, schema = known.get(api, ("", unknown[api]))
        functions.append(function(row, api, text, fitting(schema, [given for of, given in calls if of == api])))
    tasks: list[Task] = []
    said: list[str] = []
    for turn in turns:
        if turn["role"] != "API":
            said.append(f"{turn['role']}: {turn.get('text', '')}")
            continue
        api, arguments, given = turn["api_name"], turn["param_dict"], turn.get("result")
        output = given.get("output") if isinstance(given, Mapping) else given
        metadata = {
            "category": "",
            "functions": functions,
            "ground_truth": [accepted_call(api, arguments)],
            "results": [result(api, arguments, output)],
        } | rest(row, "level")
        question = "\n".join([*said, "Make the API call that comes next."])
        place = f"{name}/{len(tasks) + 1}"
        tasks.append(Task(place, question, (), "calls", split=split_of(row, split), metadata=metadata))
        said.append(f"API: {api}({json.dumps(arguments, ensure_ascii=False)}) gave {json.dumps(output)}")
    return tasks


def _is_call(row: DataRow, turn: Any) -> bool:
    if not isinstance(turn, Mapping) or turn.get("role") not in ("User", "AI", "API"):
        row.wrong("turns", f"turns with the role User, AI or API, and one is {brief(turn)}")
    if turn["role"] != "API":
        return False
    if not isinstance(turn.get("api_name"), str) or not isinstance(turn.get("param_dict"), Mapping):
        row.wrong("turns", f"API turns with 'api_name' and 'param_dict', and one is {brief(turn)}")
    return True


def _api_schemas(place: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """Description and schema by name; what is no plain data in a description is left out."""
    found: list[tuple[str, Sequence[ast.stmt]]]
    if place.is_dir():
        found = [(node.name, node.body) for file in sorted(place.glob("*.py")) for node in _classes(file)]
    else:
        found = [(row.text("name"), _statements(row.text("info"), row.place)) for row in read_rows(place)]
    schemas = {}
    for name, body in found:
        said = _assigned(body)
        inputs = said.get("input_parameters")
        if isinstance(inputs, Mapping):
            # Nothing says which of them must be given.
            schemas[name] = (str(said.get("description") or ""), parameters_of(inputs, ()))
    return schemas


def _classes(file: Path) -> list[ast.ClassDef]:
    return [node for node in _statements(file.read_text("utf-8"), str(file)) if isinstance(node, ast.ClassDef)]


def _statements(text: str, place: str) -> Sequence[ast.stmt]:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        # Some published descriptions are cut wrongly; the dialogues are whole without them.
        text = f"{place}: a description that is no Python ({error}); its function takes what its calls have"
        warnings.warn(text, DataWarning, stacklevel=2)
        return []


def _assigned(body: Sequence[ast.stmt]) -> dict[str, Any]:
    """The names that get plain data."""
    found: dict[str, Any] = {}
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except (ValueError, TypeError, RecursionError, MemoryError):
                continue
    return found


# -- TRAJECT-Bench -----------------------------------------------------------------------------------------------------


def traject(*, path: str | Path, tools: str | Path = "", domain: str = "", split: str = "") -> Iterator[Task]:
    """Tasks of the kind "calls". A task offers all tools of its domain; optional arguments may be left out.

    Args:
        path: rows with `query` and `tool list` (the published `parallel/Music/hard_ver.json`), or with `query` and
            `calls`.
        tools: the file of the domain's tools; else `tools/Music_tool.json` or `tools/Music.jsonl`, in a folder above.
            Without it, a task offers the tools that its gold calls.
        domain: of the file; else the column `domain`, else from the path.
    """
    file = Path(path)
    catalogue = cache(lambda name: _tools(Path(tools) if tools else _tools_above(file, name)))

    def make(row: DataRow) -> Task:
        of = domain or row.text("domain", default="") or file.parent.name
        return _trajectory(row, file, of, catalogue, split)

    return stream(path, make)


def _tools_above(file: Path, domain: str) -> Path | None:
    names = (f"{domain}_tool.json", f"{domain}.jsonl")
    places = [folder / "tools" / name for folder in [*file.parents][:4] for name in names]
    return next((place for place in places if place.is_file()), None)


def _tools(place: Path | None) -> dict[str, dict[str, Any]]:
    made = {}
    for row in read_rows(place) if place is not None else ():
        name = row.text("tool name", "name")
        required, optional = (
            row.data.get(f"{kind}_parameters", row.data.get(kind)) or [] for kind in ("required", "optional")
        )
        described = {each["name"]: each for each in (*required, *optional) if isinstance(each, Mapping)}
        schema = parameters_of(described, [each["name"] for each in required if isinstance(each, Mapping)])
        made[name] = function(row, name, row.text("tool description", "description", default=""), schema)
    return made


def _trajectory(row: DataRow, file: Path, domain: str, catalogue: Any, split: str) -> Task:
    calls = [_call(row, each) for each in row.items("tool list", "calls")]
    if not calls:
        row.wrong(row.needed("tool list", "calls"), "at least one call")
    functions = dict(catalogue(domain))
    unknown = seen_in((name, arguments) for name, arguments, _, _ in calls)
    for name in unknown:
        known = functions.get(name, {"description": "", "parameters": unknown[name]})
        schema = fitting(known["parameters"], [given for of, given, _, _ in calls if of == name])
        functions[name] = function(row, name, known["description"], schema)
    metadata = {
        "category": "",
        "functions": [*functions.values()],
        "ground_truth": [_spelled(accepted_call(name, values, optional)) for name, values, optional, _ in calls],
        "results": [result(name, values, output) for name, values, _, output in calls],
        "domain": domain,
    }
    # Ids of published rows are only their numbers, which several files share.
    name = id_of("traject", row, "id") if row.column("id") else f"traject/{domain}/{file.stem}/{row.number}"
    return Task(name, row.text("query"), (), "calls", split=split_of(row, split), metadata=metadata)


def _call(row: DataRow, call: Any) -> tuple[str, dict[str, Any], list[str], Any]:
    """Name, arguments, those of them that are optional, and the recorded result."""
    name = call.get("tool name", call.get("tool")) if isinstance(call, Mapping) else None
    if not isinstance(name, str):
        raise row.error(f"a call is {brief(call)}; expected 'tool name' and its parameters: correct the row")
    if "arguments" in call:
        arguments = dict(call["arguments"])
        optional = [key for key in arguments if key not in call.get("required", arguments)]
        return name, arguments, optional, call.get("output")
    given = [{e["name"]: e.get("value") for e in call.get(f"{k} parameters") or ()} for k in ("required", "optional")]
    return name, given[0] | given[1], [*given[1]], call.get("executed_output")


def _spelled(call: dict[str, Any]) -> dict[str, Any]:
    """The same call, with numbers and truth values also as they are without, or with, their quotes."""
    return {name: {key: _spellings(values) for key, values in given.items()} for name, given in call.items()}


def _spellings(values: list[Any]) -> list[Any]:
    value = values[0]
    others: list[Any] = []
    if isinstance(value, bool | int | float):
        others = [json.dumps(value)]
    elif isinstance(value, str):
        try:
            read = json.loads(value.lower())
        except (ValueError, RecursionError):
            read = None
        others = [read] if isinstance(read, bool | int | float) else []
    return [*values, *others]
