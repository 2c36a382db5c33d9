"""ACEBench, When2Call, Seal-Tools and NESTFUL: one request, answered with calls, or with none.

Seal-Tools and NESTFUL have calls that use what earlier ones gave, and no recorded results. There a tool's result holds
the very names by which the gold refers to it, such as `{"hotel": "$var1.hotel$"}`: who passes a result on gives the
gold's argument. A reply that writes such references itself is graded the same.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from concertino_bench.tasks.task import DataError, Task

from .call_tasks import (
    ANY_CALL,
    NO_CALL,
    accepted_call,
    call_name,
    first_values,
    fitting,
    function,
    parameters_of,
    read_json_column,
    result,
    seen_in,
)
from .choices import lettered_question
from .row_values import brief
from .rows import DataRow, read_rows
from .streaming import id_of, rest, split_of, stream

# -- ACEBench ----------------------------------------------------------------------------------------------------------

_NUMBERED = re.compile(r"(.+)_\d+")


def acebench(*, path: str | Path, answers: str | Path = "", split: str = "") -> Iterator[Task]:
    """Tasks of the kind "calls".

    In the `special` files nothing is to be called: a request lacks something, has a wrong value, or no function fits.
    What the reply says about it is not graded; the row's `ground_truth` is in the metadata as `trouble`.

    Args:
        path: `data_normal_….json` or `data_special_….json`: JSON Lines with `id`, `question`, `function`, maybe `time`.
        answers: the file with the gold, joined by id; else the column `ground_truth`, else the file of the same name in
            the folder `possible_answer` beside it.

    Raises:
        DataError: a file or a row is wrong, or it is one of the `agent` files, whose world is not simulated.
    """
    file = Path(path)
    beside = file.parent / "possible_answer" / file.name
    gold = cache(lambda: _by_id(answers or beside)) if answers or beside.is_file() else dict
    return stream(path, lambda row: _ace(row, gold(), split))


def _by_id(path: str | Path) -> dict[str, Any]:
    return {row.text("id"): row.data[row.needed("ground_truth")] for row in read_rows(path)}


def _ace(row: DataRow, gold: Mapping[str, Any], split: str) -> Task:
    name = id_of("acebench", row, "id")
    if row.column("initial_config", "involved_classes"):
        raise row.error("an agent task, whose world is not simulated; expected a file data_normal_… or data_special_…")
    offered = [row.data["function"]] if isinstance(row.data.get("function"), dict) else row.items("function")
    functions = [_ace_function(row, each) for each in offered]
    truth = row.data.get("ground_truth", gold.get(name))
    if truth is None:
        raise row.error(f"no gold for {name!r}; expected a column 'ground_truth', or a file with that id: answers=…")
    told, asked = row.text("time", default=""), row.text("question").strip()
    metadata: dict[str, Any] = {"functions": functions, "subset": name.rpartition("_")[0]}
    if name.startswith("special"):
        metadata |= {"category": NO_CALL, "ground_truth": None, "trouble": truth}
    else:
        gold_calls = _ace_gold(row, truth, {each["name"] for each in functions})
        metadata |= {"category": "normal", "ground_truth": gold_calls}
        for each in functions:
            values = [first_values(call[each["name"]]) for call in gold_calls if each["name"] in call]
            each["parameters"] = fitting(each["parameters"], values) if values else each["parameters"]
    question = f"{told.strip()}\n\n{asked}" if told.strip() else asked
    return Task(name, question, (), "calls", split=split_of(row, split), metadata=metadata)


def _ace_function(row: DataRow, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise row.error(f"a function is {brief(given)}; expected 'name', 'description' and 'parameters'")
    # Two of the published generators call the schema `arguments`.
    schema = given.get("parameters", given.get("arguments"))
    return function(row, given.get("name"), given.get("description"), schema)


def _ace_gold(row: DataRow, truth: Any, known: set[str]) -> list[dict[str, Any]]:
    """The calls; where a row has several right answers with the same calls, the values of all of them will do."""
    several = truth if isinstance(truth, list) else [truth]
    if not several or not all(isinstance(each, Mapping) for each in several):
        raise row.error(f"ground_truth is {brief(truth)}; expected {{function: {{argument: value}}}}: correct the row")
    read = [_ace_calls(row, each, known) for each in several]
    if any([*map(list, each)] != [*map(list, read[0])] for each in read):
        # A conversation of several turns: the calls of all turns count together.
        return [call for each in read for call in each]
    for other in read[1:]:
        for call, more in zip(read[0], other, strict=True):
            _take_values(call, more)
    return read[0]


def _ace_calls(row: DataRow, truth: Mapping[str, Any], known: set[str]) -> list[dict[str, Any]]:
    calls = []
    for name, arguments in truth.items():
        if not isinstance(arguments, Mapping):
            raise row.error(f"ground_truth of {name!r} is {brief(arguments)}; expected its arguments: correct the row")
        # Calls of one function are numbered, since the names of an object differ.
        match = _NUMBERED.fullmatch(name) if call_name(name) not in known else None
        calls.append(accepted_call(match[1] if match else name, arguments))
    return calls


def _take_values(call: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, arguments in more.items():
        for key, values in arguments.items():
            mine = call[name].setdefault(key, [""])
            mine += [value for value in values if value not in mine]


# -- When2Call ---------------------------------------------------------------------------------------------------------

Form = Literal["calls", "choice"]
_RIGHT = ("tool_call", "request_for_info", "cannot_answer", "direct")


def when2call(*, path: str | Path, form: Form = "calls", seed: int = 0, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "calls", or "choice".

    As calls, a row is right if something is called where a call is right, and nothing elsewhere; asking back and
    declining are not told apart. As a choice, the four published replies are options, in an order that `seed` draws.

    Args:
        path: rows with `question`, `tools` (texts of JSON), `correct_answer`, and for a choice `answers`.
        form: "calls" or "choice".
        seed: of the order of options.
    """
    if form not in get_args(Form):
        raise DataError(f"form={form!r}; expected 'calls' or 'choice'")
    return stream(path, lambda row: _when(row, form, seed, split))


def _when(row: DataRow, form: Form, seed: int, split: str) -> Task:
    name, right = id_of("when2call", row, "uuid", "id"), row.text("correct_answer")
    if right not in _RIGHT:
        row.wrong("correct_answer", f"one of {', '.join(_RIGHT)}")
    split = split_of(row, split)
    kept = {"correct": right} | rest(row, "source", "source_id", "held_out_param")
    if form == "choice":
        replies = row.data[row.needed("answers")]
        if not isinstance(replies, dict) or right not in replies or not all(map(_is_text, replies.values())):
            row.wrong("answers", f"texts by kind of reply, one of them {right!r}")
        tools = "\n".join(row.texts("tools")) or "none"
        stem = f"The tools are:\n{tools}\n\nThe user says: {row.text('question')}\n\nWhich reply is best?"
        order = shuffled(list(replies), name, seed)
        question, letter = lettered_question(stem, [replies[each] for each in order], order.index(right))
        kept |= {"stem": stem, "choices": [replies[each] for each in order]}
        return Task(name, question, (letter,), "choice", split=split, metadata=kept)
    category = ANY_CALL if right == "tool_call" else NO_CALL
    functions = [_json_function(row, text) for text in row.items("tools")]
    metadata = {"category": category, "functions": functions, "ground_truth": None} | kept
    return Task(name, row.text("question"), (), "calls", split=split, metadata=metadata)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _json_function(row: DataRow, text: Any) -> dict[str, Any]:
    try:
        given = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise row.error(f"a tool is no JSON ({error}); expected a text that holds a JSON object") from None
    return _ace_function(row, given)


def shuffled(values: Sequence[str], name: str, seed: int) -> list[str]:
    """Values in an order that follows from a task's id and a seed alone, the same on every machine."""
    order = list(values)
    # A text as seed: its hash does not differ from process to process.
    random.Random(f"{seed} {name}").shuffle(order)
    return order


# -- Seal-Tools --------------------------------------------------------------------------------------------------------


def seal_tools(*, path: str | Path, tools: str | Path = "", split: str = "") -> Iterator[Task]:
    """Tasks of the kind "calls". A task offers the tools that its gold calls.

    Args:
        path: rows with `query` (or `question`) and `calling`.
        tools: the file of tools; else `tool.jsonl` or `tools.jsonl` beside it. Without it, a tool takes what its calls
            have.

    Raises:
        DataError: a file or a row is wrong, or a tool is not in the file of tools.
    """
    place = Path(tools) if tools else _beside(path, "tool.jsonl", "tools.jsonl")
    there = bool(tools) or place.is_file()
    catalogue = cache(lambda: {row.text("api_name"): row.data for row in read_rows(place)} if there else None)
    return stream(path, lambda row: _seal(row, catalogue(), place, split))


def _beside(path: str | Path, *names: str) -> Path:
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    return next((folder / name for name in names if (folder / name).is_file()), folder / names[0])


def _seal(row: DataRow, catalogue: Mapping[str, Mapping[str, Any]] | None, place: Path, split: str) -> Task:
    calls = row.items("calling")
    for call in calls:
        if not isinstance(call, dict) or not isinstance(call.get("parameters"), dict) or not _is_text(call.get("api")):
            row.wrong("calling", f"calls with 'api' and 'parameters', and one is {brief(call)}")
    made = [(call["api"], call["parameters"]) for call in calls]
    functions = []
    for api, schema in seen_in(made).items():
        tool = {"parameters": schema["properties"]} if catalogue is None else catalogue.get(api)
        if tool is None:
            raise row.error(f"the tool {api!r} is not in {place}; expected its row there: give tools=…")
        known = parameters_of(tool.get("parameters") or {}, tool.get("required") or ())
        fits = fitting(known, [arguments for of, arguments in made if of == api])
        functions.append(function(row, api, tool.get("api_description"), fits))
    results = []
    for call in calls:
        fields = [*((catalogue or {}).get(call["api"], {}).get("responses") or {})]
        given = dict(zip(fields, call.get("responses") or (), strict=False))
        results.append(result(call["api"], call["parameters"], given))
    gold = [accepted_call(api, arguments) for api, arguments in made]
    metadata = {"category": "", "functions": functions, "ground_truth": gold, "results": results}
    name, asked = id_of("seal-tools", row, "id"), row.text("query", "question")
    return Task(name, asked, (), "calls", split=split_of(row, split), metadata=metadata)


# -- NESTFUL -----------------------------------------------------------------------------------------------------------

_REFERENCE = re.compile(r"\$(\w+)\.([\w.]+)\$")
_RESULT = "var_result"


def nestful(*, path: str | Path, spec: str | Path = "", split: str = "") -> Iterator[Task]:
    """Tasks of the kind "calls". The pseudo call `var_result`, which names what is answered, is in `answer_map`.

    Args:
        path: rows with `input` and `output`, such as `non-executable-sgd-data.json`; a row may have its own `tools`.
        spec: the file of functions; else the one beside it whose name has `spec` for `data`, or `_spec` behind it.
            A task offers the functions that its gold calls.

    Raises:
        DataError: a file or a row is wrong.
    """
    file = Path(path)
    names = (file.name.replace("data", "spec"), f"{file.stem}_spec{file.suffix}")
    place = Path(spec) if spec else _beside(path, *(name for name in names if name != file.name))
    catalogue = cache(lambda: {row.text("name"): row.data for row in read_rows(place)} if place.is_file() else {})
    return stream(path, lambda row: _nested(row, catalogue, split))


def _nested(row: DataRow, catalogue: Any, split: str) -> Task:
    calls = read_json_column(row, "output")
    if not isinstance(calls, list) or not all(isinstance(c, dict) and isinstance(c.get("name"), str) for c in calls):
        row.wrong("output", "a list of calls with 'name' and 'arguments'")
    real = [(each["name"], each.get("arguments") or {}, each.get("label")) for each in calls if each["name"] != _RESULT]
    own = read_json_column(row, "tools") if row.column("tools") else None
    known = {each["name"]: each for each in own} if own else catalogue()
    unknown = seen_in((name, arguments) for name, arguments, _ in real)
    functions = []
    for name in {name: None for name, _, _ in real}:
        said = known.get(name, {})
        schema = fitting(_nested_schema(said) or unknown[name], [given for of, given, _ in real if of == name])
        functions.append(function(row, name, said.get("description"), schema))
    used = [match.groups() for match in _REFERENCE.finditer(json.dumps(calls))]
    results = []
    for name, arguments, label in real:
        fields = [*(known.get(name, {}).get("output_parameters") or {})]
        fields += [path for of, path in used if of == label]
        results.append(result(name, arguments, _symbols(str(label), fields)))
    metadata: dict[str, Any] = {
        "category": "",
        "functions": functions,
        "ground_truth": [accepted_call(name, arguments) for name, arguments, _ in real],
        "results": results,
        "answer_map": next((each.get("arguments") for each in calls if each["name"] == _RESULT), {}),
    }
    name, asked = id_of("nestful", row, "sample_id", "id"), row.text("input")
    return Task(name, asked, (), "calls", split=split_of(row, split), metadata=metadata)


def _nested_schema(said: Mapping[str, Any]) -> dict[str, Any] | None:
    given = next((said[key] for key in ("arguments", "query_parameters", "parameters") if said.get(key)), None)
    if not isinstance(given, Mapping):
        return None
    if "properties" in given:
        return dict(given)
    required = [name for name, each in given.items() if isinstance(each, Mapping) and each.get("required")]
    return parameters_of(given, required)


def _symbols(label: str, paths: Sequence[str]) -> dict[str, Any]:
    """A result whose fields are the references by which the gold names them."""
    made: dict[str, Any] = {}
    for path in paths:
        *outer, last = path.split(".")
        inner = made
        for name in outer:
            if not isinstance(inner.get(name), dict):
                inner[name] = {}
            inner = inner[name]
        inner[last] = f"${label}.{path}$"
    return made
