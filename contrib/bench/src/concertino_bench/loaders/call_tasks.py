"""Tasks that are answered with calls, made of the rows of many benchmarks, and a world that answers as was recorded.

The metadata is that of `bfcl`: `functions`, `ground_truth` (per call and argument the accepted values) and `category`;
`results` holds what calls gave in the published run, if it is known. In a task's world each function is a tool. It
gives the recorded result, else it says that it was called.

The invariants: no text of a file is executed; names are names of tools, so what is no letter, digit, `_`, `.` or `-`
becomes `_`, in functions and gold alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import concertino as ct
from concertino.schema import compile_schema

from concertino_bench.tasks.task import Task

from .dialect import json_schema
from .row_values import brief
from .rows import DataRow

NO_CALL = "irrelevance"
"""The category of tasks in which nothing is to be called."""
ANY_CALL = "live_relevance"
"""The category of tasks in which something is to be called, whatever it is."""

_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 64


def call_name(name: str) -> str:
    """The name of a function, as a tool may have it."""
    plain = _OTHER.sub("_", name).strip("_.-") or "tool"
    if len(plain) <= _LONGEST:
        return plain
    # A cut name could be that of another function too.
    return f"{plain[: _LONGEST - 7]}_{blake2b(name.encode(), digest_size=3).hexdigest()}"


def accepted_call(name: str, arguments: Mapping[str, Any], optional: Iterable[str] = ()) -> dict[str, Any]:
    """A gold call as accepted values.

    Args:
        name: of the function, as published.
        arguments: with the one right value each.
        optional: arguments that may be left out.
    """
    may_lack = set(optional)
    return {
        call_name(name): {
            key: [accepted_value(value), ""] if key in may_lack else [accepted_value(value)]
            for key, value in arguments.items()
        }
    }


def accepted_value(value: Any) -> Any:
    """A gold value as accepted values: the values of an object are lists of what will do."""
    if isinstance(value, Mapping):
        return {key: [accepted_value(each)] for key, each in value.items()}
    return [accepted_value(each) for each in value] if isinstance(value, list) else value


def first_values(accepted: Mapping[str, Any]) -> dict[str, Any]:
    """A right call's arguments: of accepted values the first ones, the inverse of `accepted_value`."""
    return {name: _first(values[0]) for name, values in accepted.items()}


def _first(value: Any) -> Any:
    if isinstance(value, Mapping):
        return first_values(value)
    return [_first(each) for each in value] if isinstance(value, list) else value


def function(row: DataRow, name: Any, description: Any, parameters: Any) -> dict[str, Any]:
    """A function of a task, which can be a tool.

    Raises:
        DataError: it cannot; says why.
    """
    if not isinstance(name, str) or not name.strip() or not isinstance(parameters or {}, Mapping):
        raise row.error(f"a function is {brief(name)} with {brief(parameters)}; expected a name and a schema")
    made = {"name": call_name(name), "description": str(description or "").strip(), "parameters": parameters or {}}
    try:
        # Compiled now: a function that cannot be a tool is an error of its row, not of a run.
        _spec(made, lambda _: None).validator  # noqa: B018
    except ct.SpecError as error:
        raise row.error(f"function {name!r} cannot be a tool ({error}); correct the row") from error
    return made


def parameters_of(described: Mapping[str, Any], required: Iterable[str]) -> dict[str, Any]:
    """A schema of parameters that are described one by one.

    Args:
        described: by name, with `type` and `description`; all else is left out, for examples, defaults and even allowed
            values are often no JSON Schema, or refuse the gold.
        required: those that must be given.
    """
    properties = {}
    for name, each in described.items():
        said = each if isinstance(each, Mapping) else {}
        kind = str(said.get("type") or "").split(" ")[0].lower()
        kind = "string" if kind in ("enum", "date", "datetime", "time") else kind
        text = said.get("description")
        properties[name] = ({"type": kind} if kind else {}) | ({"description": text} if text else {})
    return {"type": "object", "properties": properties, "required": [name for name in required if name in properties]}


def fitting(parameters: Mapping[str, Any], calls: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A schema that takes the gold: what the gold leaves out is not required, and where it breaks a type, any will do.

    Some published gold breaks its own schema, and a right call must not be refused.

    Args:
        calls: the arguments of each.
    """
    properties, required = dict(parameters.get("properties") or {}), list(parameters.get("required") or ())
    for arguments in calls:
        required = [name for name in required if name in arguments]
        for name, value in arguments.items():
            one = json_schema({"properties": {name: properties.get(name, {})}}, lambda _: None)
            if name not in properties or not compile_schema(one).is_valid({name: value}):
                text = properties.get(name, {}).get("description")
                properties[name] = {"description": text} if text else {}
    return {**parameters, "properties": properties, "required": required}


def seen_in(calls: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Schemas of functions that nobody describes: they take the arguments of their calls, of any type."""
    found: dict[str, dict[str, Any]] = {}
    for name, arguments in calls:
        schema = found.setdefault(name, {"type": "object", "properties": {}})
        schema["properties"] |= {key: {} for key in arguments}
    return found


def result(name: str, arguments: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """What a call gave in the published run, as the metadata keeps it."""
    return {"name": call_name(name), "arguments": dict(arguments), "result": value}


def world(task: Task) -> RecordedWorld:
    """A world in which the functions of a task can be called."""
    return RecordedWorld(task)


class RecordedWorld:
    """The functions of one task as tools that give recorded results, and record their own calls.

    A call with the arguments of a recorded one gets its result; any other gets those of its function in turn, and the
    last one again. A function without a record says `called`.
    """

    def __init__(self, task: Task) -> None:
        self._calls: list[dict[str, Any]] = []
        self._results: dict[str, list[Mapping[str, Any]]] = {}
        for each in task.metadata.get("results") or ():
            self._results.setdefault(each["name"], []).append(each)
        self._given: dict[str, int] = {}
        self._tools = [_spec(each, self._answer_of(each["name"])) for each in task.metadata["functions"]]

    def members(self) -> Sequence[ct.ToolSpec]:
        """One tool per function."""
        return self._tools

    def state(self) -> list[dict[str, Any]]:
        """The calls that ran, in the order in which they began: `{"name": …, "arguments": {…}}`."""
        return list(self._calls)

    def _answer_of(self, name: str) -> Any:
        def answer(arguments: Mapping[str, Any]) -> Any:
            given = dict(arguments)
            self._calls.append({"name": name, "arguments": given})
            known = self._results.get(name)
            if not known:
                return "called"
            same = next((each["result"] for each in known if each["arguments"] == given), None)
            if same is not None:
                return same
            place = self._given.get(name, 0)
            self._given[name] = place + 1
            return known[min(place, len(known) - 1)]["result"]

        return answer


def _spec(function: Mapping[str, Any], run: Any) -> ct.ToolSpec:
    name, text = function["name"], function.get("description") or function["name"]
    # Unknown types take any value, which is all that some of these sets say of a type.
    schema = json_schema(function["parameters"], lambda _: None)
    # Arguments as one mapping: the names of parameters need not be names of Python.
    return ct.ToolSpec(name, text, schema, run, takes_mapping=True, retry_safe=True)


def read_json_column(row: DataRow, column: str) -> Any:
    """What a column holds; a text is read as JSON, since some published files have JSON inside of JSON."""
    value = row.data[row.needed(column)]
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise row.error(f"column {column!r} is no JSON ({error}); expected JSON in a text: correct the row") from None
