"""BFCL: the published files and the copies, schemas in their dialect, worlds that record, gold that is only read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.schema import compile_schema
from concertino.testing import run_call
from concertino_bench import DataError, Submission, Task
from concertino_bench.graders import CallMatch
from concertino_bench.loaders import DataWarning, task_sets
from concertino_bench.loaders.dialect import json_schema
from concertino_bench.loaders.function_calls import CallWorld, _Gold, bfcl

ASK = [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Play two songs."}]]
PLAY = {
    "name": "spotify.play",
    "description": "Play songs.",
    "parameters": {
        "type": "dict",
        "properties": {
            "artist": {"type": "string"},
            "seconds": {"type": "float"},
            "place": {"type": "tuple", "items": {"type": "double"}},
            "type": {"type": "HashMap", "properties": {"deep": {"type": "ArrayList", "items": {"type": "long"}}}},
            "anything": {"type": "any", "default": None},
        },
        "required": ["artist"],
    },
}
GOLD = [{"spotify.play": {"artist": ["A", "a"], "seconds": [2.0, ""]}}] * 2
ROW = {"id": "parallel_1", "question": ASK, "function": [PLAY], "ground_truth": GOLD}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def one(tmp_path: Path, row: dict[str, Any], name: str = "BFCL_v4_parallel.json", **options: Any) -> Task:
    (task,) = bfcl(path=write(tmp_path / name, row), **options)
    return task


def test_a_row_is_kept_as_published_and_its_category_is_that_of_the_file(tmp_path: Path) -> None:
    task = one(tmp_path, ROW)
    assert (task.id, task.kind, task.answers) == ("parallel_1", "calls", ())
    assert task.question == "Be brief.\n\nPlay two songs."
    assert task.metadata == {"category": "parallel", "functions": [PLAY], "ground_truth": GOLD, "turns": ASK}
    assert one(tmp_path, {**ROW, "category": "multiple"}).metadata["category"] == "multiple"
    assert one(tmp_path, ROW, category="simple_python").metadata["category"] == "simple_python"


def test_gold_is_joined_by_id_from_the_file_beside_in_any_order(tmp_path: Path) -> None:
    rows = [{**ROW, "id": f"parallel_{number}", "ground_truth": None} for number in range(3)]
    path = write(tmp_path / "BFCL_v4_parallel.json", *rows)
    gold = [{"id": f"parallel_{number}", "ground_truth": [{"f": {"n": [number]}}]} for number in (2, 0, 1)]
    write(tmp_path / "possible_answer" / path.name, *gold)
    assert [task.metadata["ground_truth"][0]["f"]["n"] for task in bfcl(path=path)] == [[0], [1], [2]]
    elsewhere = write(tmp_path / "gold.json", *gold[:2])
    with pytest.raises(DataError, match=r"parallel\.json:2: no gold for 'parallel_1' of the category 'parallel'"):
        list(bfcl(path=path, answers=elsewhere))
    twice = write(tmp_path / "BFCL_v4_parallel.json", rows[0], rows[0])
    with pytest.raises(DataError, match="the id 'parallel_0' is that of line 1 too"):
        list(bfcl(path=twice))


@pytest.mark.parametrize("category", ["irrelevance", "live_irrelevance", "live_relevance"])
def test_categories_without_gold_need_none(category: str, tmp_path: Path) -> None:
    row = {key: value for key, value in ROW.items() if key != "ground_truth"}
    assert one(tmp_path, row, f"BFCL_v4_{category}.json").metadata["ground_truth"] is None
    with pytest.raises(DataError, match="no gold for 'parallel_1' of the category 'simple'"):
        one(tmp_path, row, "BFCL_v4_simple.json")


def test_gold_is_let_go_when_its_row_is_read(tmp_path: Path) -> None:
    gold = [{"id": f"parallel_{number}", "ground_truth": [{"f": {"n": [number]}}]} for number in range(50)]
    known = _Gold(write(tmp_path / "gold.json", *gold))
    for number in range(50):
        assert known.of(f"parallel_{number}") == ([{"f": {"n": [number]}}], None)
        assert not known._passed
    assert known.of("parallel_7") == ([{"f": {"n": [7]}}], None), "asked for again"
    assert known.of("parallel_50") is None


def test_an_id_that_is_there_twice_is_told_where_gold_is_in_another_file(tmp_path: Path) -> None:
    rows = [{**ROW, "id": f"parallel_{number}", "ground_truth": None} for number in (0, 1, 2, 1)]
    path = write(tmp_path / "BFCL_v4_parallel.json", *rows)
    gold = [{"id": f"parallel_{number}", "ground_truth": [{"f": {"n": [number]}}]} for number in range(3)]
    write(tmp_path / "possible_answer" / path.name, *gold)
    with pytest.raises(DataError, match="the id 'parallel_1' is that of line 2 too"):
        list(bfcl(path=path))


def test_gold_that_breaks_its_own_schema_is_no_error(tmp_path: Path) -> None:
    gold = [{"spotify.play": {"seconds": ["dontcare", None]}}]
    assert one(tmp_path, {**ROW, "ground_truth": gold}).metadata["ground_truth"] == gold


# -- schemas -----------------------------------------------------------------------------------------------------------


def test_the_dialect_becomes_a_json_schema(tmp_path: Path) -> None:
    told: list[str] = []
    assert json_schema(PLAY["parameters"], told.append) == {  # type: ignore[arg-type]
        "type": "object",
        "properties": {
            "artist": {"type": "string"},
            "seconds": {"type": "number"},
            "place": {"type": "array", "items": {"type": "number"}},
            "type": {"type": "object", "properties": {"deep": {"type": "array", "items": {"type": "integer"}}}},
            "anything": {"default": None},
        },
        "required": ["artist"],
    }
    assert told == []


def test_an_unknown_type_is_any_with_a_warning_that_names_the_place(tmp_path: Path) -> None:
    odd = {"name": "f", "description": "F.", "parameters": {"type": "dict", "properties": {"x": {"type": "Quux"}}}}
    with pytest.warns(DataWarning, match=r"parallel\.json:1: function 'f': parameters\.x has the type 'Quux'"):
        task = one(tmp_path, {**ROW, "function": [odd]})
    (tool,) = CallWorld(task).members()
    assert tool.input_schema["properties"] == {"x": {}}


def test_names_that_differ_only_in_dots_are_refused(tmp_path: Path) -> None:
    other = {**PLAY, "name": "spotify_play"}
    with pytest.raises(DataError, match=r"'spotify\.play' and 'spotify_play' are one name where providers write '_'"):
        one(tmp_path, {**ROW, "function": [PLAY, other]})


async def test_a_name_that_no_tool_can_have_loses_its_leading_underscores(tmp_path: Path) -> None:
    task = one(tmp_path, {**ROW, "function": [{**PLAY, "name": "__get_users"}]}, "BFCL_v4_live_irrelevance.json")
    assert task.metadata["functions"][0]["name"] == "__get_users"
    (tool,) = CallWorld(task).members()
    assert tool.name == "get_users"
    made = {"name": "get_users", "arguments": {}, "status": "OK"}
    nothing: Any = None  # the grader asks nothing of the pool
    grade = await CallMatch().grade(task, Submission("done", calls=[made]), nothing)
    assert grade.verdict == "wrong", "a call of the function by the tool's name is one"
    with pytest.raises(DataError, match="'__get_users' and 'get_users' are one name"):
        one(tmp_path, {**ROW, "function": [{**PLAY, "name": "__get_users"}, {**PLAY, "name": "get_users"}]})


def test_a_list_of_ids_is_told_from_a_file_of_tasks(tmp_path: Path) -> None:
    (tmp_path / "BFCL_v4_format_sensitivity.json").write_text('{"parallel": ["parallel_1"]}')
    with pytest.raises(DataError, match="holds the ids of tasks of other files, and no tasks"):
        bfcl(path=tmp_path / "BFCL_v4_format_sensitivity.json")


# -- memory and web search ---------------------------------------------------------------------------------------------

REMEMBER = {"id": "memory_0-shop-0", "question": [[{"role": "user", "content": "What is my name?"}]]}
REMEMBER |= {"involved_classes": ["MemoryAPI"], "scenario": "shop"}
FETCH = {"name": "fetch_url_content", "description": "Fetch.", "parameters": {"type": "dict", "properties": {}}}


def documents(tmp_path: Path) -> None:
    functions = {"memory_kv": "archival_memory_list_keys", "memory_rec_sum": "memory_retrieve"}
    for file, name in functions.items():
        described = {"name": name, "description": "D.", "parameters": {"type": "dict", "properties": {}}}
        write(tmp_path / "multi_turn_func_doc" / f"{file}.json", described)
    write(tmp_path / "multi_turn_func_doc" / "web_search.json", FETCH)
    before = {"id": "memory_prereq_0", "question": [[{"role": "user", "content": "I am Michael."}]]}
    write(tmp_path / "memory_prereq_conversation" / "memory_shop.json", before)


async def test_a_memory_task_asks_for_a_mention_and_begins_with_what_the_user_said(tmp_path: Path) -> None:
    documents(tmp_path)
    row = {**REMEMBER, "ground_truth": ["Michael", "Mike"]}
    task = one(tmp_path, row, "BFCL_v4_memory.json")
    assert (task.kind, task.answers, task.metadata["aliases"]) == ("mention", ("Michael",), ["Mike"])
    (tool,) = CallWorld(task).members()
    assert "user_said_1" in str((await run_call(tool, {})).content)
    (tool,) = CallWorld(one(tmp_path, row, "BFCL_v4_memory.json", backend="rec_sum")).members()
    assert "I am Michael." in str((await run_call(tool, {})).content)
    with pytest.raises(DataError, match="backend='sql'; expected kv, vector, rec_sum"):
        one(tmp_path, row, "BFCL_v4_memory.json", backend="sql")
    with pytest.raises(DataError, match="expected texts, one of which the answer mentions"):
        one(tmp_path, {**row, "ground_truth": [{"f": {}}]}, "BFCL_v4_memory.json")


def test_a_web_search_task_has_the_pages_that_its_gold_names(tmp_path: Path) -> None:
    documents(tmp_path)
    path = write(tmp_path / "BFCL_v4_web_search.json", {**REMEMBER, "involved_classes": ["WebSearchAPI"]})
    page = {"subquestion": "Who is it?", "answer": "Zhang", "source": "https://a.example/1"}
    write(tmp_path / "possible_answer" / path.name, {"id": REMEMBER["id"], "ground_truth": ["Zhang"], "source": [page]})
    (task,) = bfcl(path=path)
    assert (task.kind, task.answers, task.metadata["pages"]) == ("mention", ("Zhang",), [page])


# -- the world ---------------------------------------------------------------------------------------------------------


async def test_a_world_records_the_calls_that_ran_and_only_those(tmp_path: Path) -> None:
    (each,) = [each for each in task_sets() if each.name == "bfcl"]
    assert each.world is not None
    task = one(tmp_path, ROW)
    world, untouched = each.world(task), each.world(task)
    pool = ct.Pool(world.members())
    assert [tool["function"]["name"] for tool in pool.to_openai()] == ["spotify_play"]
    calls = [
        ct.Call("spotify_play", {"artist": "A", "seconds": 2}),
        ct.Call("spotify.play", {"artist": "A", "seconds": 2}),
        ct.Call("spotify.play", {"seconds": "two"}),
    ]
    async with ct.Executor() as executor:
        seen = await executor.run(ct.Plan(calls), pool)
    assert [observation.status for observation in seen] == ["OK", "OK", "PARSE_ERR"]
    assert world.state() == [{"name": "spotify.play", "arguments": {"artist": "A", "seconds": 2}}] * 2
    assert untouched.state() == []
    assert json.loads(json.dumps(world.state())) == world.state()


# -- several turns -----------------------------------------------------------------------------------------------------

TURNS = [[{"role": "user", "content": "Go."}], [], [{"role": "user", "content": "Stop."}]]
MULTI = {
    "id": "multi_turn_base_1",
    "question": TURNS,
    "involved_classes": ["MathAPI"],
    "excluded_function": ["log"],
    "initial_config": {"MathAPI": {}},
    "ground_truth": [["add(1, b=-2.5)", "mean(numbers=[1, 2])"], [], ["add(a=True, b='x,)')"]],
}
PARAMETERS: dict[str, dict[str, Any]] = {
    "add": {"a": {"type": "float"}, "b": {}},
    "mean": {"numbers": {"type": "array"}},
    "log": {},
}
DOCUMENTS = [
    {"name": name, "description": "It counts.", "parameters": {"type": "dict", "properties": properties}}
    for name, properties in PARAMETERS.items()
]


def test_gold_in_python_text_becomes_calls_with_named_arguments(tmp_path: Path) -> None:
    write(tmp_path / "multi_turn_func_doc" / "math_api.json", *DOCUMENTS)
    task = one(tmp_path, MULTI, "BFCL_v4_multi_turn_base.json")
    assert task.question == "Turn 1: Go.\n\nTurn 2: (Further functions can be called from here on.)\n\nTurn 3: Stop."
    assert [function["name"] for function in task.metadata["functions"]] == ["add", "mean"]
    assert task.metadata["ground_truth"] == MULTI["ground_truth"]
    assert task.metadata["turn_calls"] == [
        [{"name": "add", "arguments": {"a": 1, "b": -2.5}}, {"name": "mean", "arguments": {"numbers": [1, 2]}}],
        [],
        [{"name": "add", "arguments": {"a": True, "b": "x,)"}}],
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("add(1", "not Python at column 4"),
        ("add(1, 2, 3)", "add: 3 positional arguments, and 2 parameters are known"),
        ("add(1, a=2)", "or an argument twice"),
        ("add(a=open('x').read())", "not a literal"),
        ("add", "not a call"),
        ("(lambda: 1)()", "not a call"),
        ("add(**{'a': 1})", "or an argument twice"),
        ("add(a={1, 2})", "not a literal"),
    ],
)
def test_gold_text_that_is_no_call_of_literals_is_refused_and_never_run(text: str, reason: str, tmp_path: Path) -> None:
    write(tmp_path / "multi_turn_func_doc" / "math_api.json", *DOCUMENTS)
    with pytest.raises(DataError, match=r":1: ground_truth holds .*; expected a call of literals") as caught:
        one(tmp_path, {**MULTI, "ground_truth": [[text]]}, "BFCL_v4_multi_turn_base.json")
    assert re.search(reason, str(caught.value))


def test_a_class_whose_functions_are_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"math_api\.json: file not found"):
        one(tmp_path, MULTI, "BFCL_v4_multi_turn_base.json")
    with pytest.raises(DataError, match="involved_classes names 'PhoneAPI'; expected some of GorillaFileSystem"):
        one(tmp_path, {**MULTI, "involved_classes": ["PhoneAPI"]}, "BFCL_v4_multi_turn_base.json")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"question": "Play."}, "column 'question' is a text"),
        ({"question": [["Play."]]}, "a list of turns, each a list"),
        ({"question": [[]]}, "at least one message"),
        ({"function": [{"title": "x"}]}, "expected 'name', 'description' and 'parameters'"),
        ({"function": [{"name": "x", "parameters": []}]}, "the parameters of 'x' are not an object"),
        ({"function": [{"name": "a b"}]}, "function 'a b' cannot be a tool"),
        (
            {"function": [{"name": "x", "parameters": {"properties": []}}]},
            "function 'x' cannot be a tool .*/properties",
        ),
        ({"function": None}, "no column 'involved_classes' or|column 'function' is null"),
        ({"ground_truth": {}}, "ground_truth is {}; expected a list of calls"),
    ],
)
def test_rows_of_another_shape_are_refused(columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        one(tmp_path, {**ROW, **columns})


# -- real files --------------------------------------------------------------------------------------------------------

COUNTS = {
    "irrelevance": 80,
    "live_irrelevance": 60,
    "live_multiple": 150,
    "live_parallel": 8,
    "live_parallel_multiple": 12,
    "live_relevance": 8,
    "live_simple": 129,
    "multi_turn_base": 25,
    "multi_turn_miss_func": 10,
    "multi_turn_miss_param": 10,
    "multiple": 100,
    "parallel": 100,
    "parallel_multiple": 100,
    "simple_java": 50,
    "simple_javascript": 25,
    "simple_python": 200,
}


@pytest.mark.filterwarnings("ignore::concertino_bench.loaders.DataWarning")
@pytest.mark.parametrize("category", COUNTS)
def test_every_category_loads_completely_and_every_function_is_a_tool(category: str, shared_data: Path) -> None:
    tasks = list(bfcl(path=shared_data / "bfcl" / f"{category}.jsonl"))
    assert len(tasks) == COUNTS[category]
    for task in tasks:
        assert task.metadata["category"] == category
        tools = CallWorld(task).members()
        pool = ct.Pool(tools)
        assert len(pool.to_openai()) == len(task.metadata["functions"]) > 0
        for tool in tools:
            compile_schema(tool.input_schema)


def test_the_copies_are_those_of_the_source_note(shared_data: Path) -> None:
    assert sum(COUNTS.values()) == 1067
    files = {file.stem for file in (shared_data / "bfcl").glob("*.jsonl")}
    assert files == set(COUNTS)


def test_the_one_type_that_nobody_knows_is_told(shared_data: Path) -> None:
    path = shared_data / "bfcl" / "simple_javascript.jsonl"
    with pytest.warns(DataWarning, match=r"jsonl:25: function 'createAuthToken': parameters\.options\.issuer") as seen:
        list(bfcl(path=path))
    assert len(seen) == 1


@pytest.mark.filterwarnings("ignore::concertino_bench.loaders.DataWarning")
def test_gold_that_fits_its_schema_runs_in_the_world_and_the_listed_conflicts_do_not_stop_loading(
    shared_data: Path,
) -> None:
    """The first accepted value of each argument; what conflicts is listed beside the data."""
    listed = json.loads((shared_data / "bfcl" / "gold_schema_conflicts.json").read_text(encoding="utf-8"))
    conflicts = {each["id"] for each in listed}
    checked, broken = 0, set()
    for category in COUNTS:
        if category.startswith("multi_turn") or "relevance" in category:
            continue
        for task in bfcl(path=shared_data / "bfcl" / f"{category}.jsonl"):
            tools = {tool.name: tool for tool in CallWorld(task).members()}
            for call in task.metadata["ground_truth"]:
                ((name, accepted),) = call.items()
                checked += 1
                if not compile_schema(tools[name].input_schema).is_valid(_first_values(accepted)):
                    broken.add(task.id)
    assert checked > 1000
    assert broken <= conflicts
    assert len(broken) > 10


def _first_values(accepted: Any) -> Any:
    """The first accepted value of every argument, also inside objects."""
    first = {name: next((each for each in values if each != ""), None) for name, values in accepted.items() if values}
    kept = {name: value for name, value in first.items() if value is not None or None in accepted[name]}
    return {name: _plain(value) for name, value in kept.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and value and all(isinstance(each, list) for each in value.values()):
        return _first_values(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value
