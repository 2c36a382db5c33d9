"""Sets of calls: what becomes of a row, gold calls run in the task's world and are right, and changed ones are not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino_bench import DataError, Submission, Task, Verdict
from concertino_bench.graders import CallMatch
from concertino_bench.loaders import DataWarning, call_tasks, task_sets
from concertino_bench.loaders.call_tasks import accepted_call, call_name, first_values
from concertino_bench.loaders.recorded_calls import api_bank, traject
from concertino_bench.loaders.tool_benchmarks import acebench, nestful, seal_tools, when2call

SETS = {each.name: each for each in task_sets()}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(*rows: dict[str, Any], name: str = "rows.jsonl") -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(rows) if name.endswith(".json") else "\n".join(map(json.dumps, rows))
        file.write_text(text, encoding="utf-8")
        return file

    return written


def gold_calls(task: Task) -> list[dict[str, Any]]:
    """A right call for each accepted one, as a run hands it in."""
    found = task.metadata["ground_truth"] or ()
    return [
        {"name": name, "arguments": first_values(values), "status": "OK"}
        for each in found
        for name, values in each.items()
    ]


async def verdict(task: Task, calls: list[dict[str, Any]], text: str = "") -> Verdict:
    bench: Any = None  # this grader asks nothing of the pool
    return (await CallMatch().grade(task, Submission(text, calls), bench)).verdict


async def results(task: Task, calls: list[dict[str, Any]]) -> list[Any]:
    """What the task's world gives for these calls; each has to succeed."""
    plan = ct.Plan([ct.Call(each["name"], each["arguments"]) for each in calls])
    async with ct.Executor() as executor:
        seen = await executor.run(plan, ct.Pool.of(*call_tasks.world(task).members()))
    assert [each.status for each in seen] == [ct.Status.OK] * len(calls), (task.id, seen)
    return [each.content for each in seen]


# -- names and values --------------------------------------------------------------------------------------------------


def test_names_of_functions_become_names_of_tools_and_long_ones_stay_different() -> None:
    assert call_name("Rocket League: Tournaments") == "Rocket_League_Tournaments"
    assert call_name("spotify.play") == "spotify.play"
    long, other = call_name("x" * 90 + "a"), call_name("x" * 90 + "b")
    assert len(long) == len(other) == 64
    assert long != other


def test_accepted_values_of_a_call_give_the_call_back() -> None:
    arguments = {"a": 1, "b": [{"c": [1, 2]}, {"c": []}], "d": {"e": {"f": None}}, "g": "", "h": True}
    assert first_values(accepted_call("f", arguments)["f"]) == arguments


# -- ACEBench ----------------------------------------------------------------------------------------------------------

LIGHTS = {
    "name": "lights",
    "description": "Sets lights.",
    "parameters": {"type": "dict", "properties": {"room": {"type": "string"}, "level": {"type": "integer"}}},
}


async def test_acebench_numbers_calls_of_one_function_and_gold_may_stand_beside(write: Callable[..., Path]) -> None:
    row = {"id": "normal_parallel_0", "question": "user: Lights.\n", "time": "It is Monday.", "function": LIGHTS}
    truth = {"lights_1": {"room": "hall", "level": 3}, "lights_2": {"room": "attic", "level": 7}}
    file = write(row, name="data_normal_parallel.json")
    with pytest.raises(DataError, match=r"no gold for 'normal_parallel_0'"):
        list(acebench(path=file))
    write({"id": "normal_parallel_0", "ground_truth": truth}, name="possible_answer/data_normal_parallel.json")
    (task,) = acebench(path=file)
    assert task.question == "It is Monday.\n\nuser: Lights."
    calls = gold_calls(task)
    assert [call["arguments"]["room"] for call in calls] == ["hall", "attic"]
    assert await verdict(task, calls[::-1]) is Verdict.RIGHT
    assert await verdict(task, calls[:1]) is Verdict.WRONG


async def test_acebench_takes_each_of_several_right_answers_and_calls_its_schema_by_either_name(
    write: Callable[..., Path],
) -> None:
    function = {"name": "lights", "arguments": LIGHTS["parameters"]}
    truth = [{"lights": {"room": "hall"}}, {"lights": {"room": "corridor"}}]
    (task,) = acebench(path=write({"id": "normal_a_1", "question": "Q", "function": [function], "ground_truth": truth}))
    for room, expected in (("hall", Verdict.RIGHT), ("corridor", Verdict.RIGHT), ("attic", Verdict.WRONG)):
        assert await verdict(task, [{"name": "lights", "arguments": {"room": room}, "status": "OK"}]) is expected


async def test_special_rows_of_acebench_want_no_call_and_agent_rows_are_refused(write: Callable[..., Path]) -> None:
    row = {"id": "special_incomplete_1", "question": "Q", "function": [LIGHTS], "ground_truth": {"lights": ["room"]}}
    (task,) = acebench(path=write(row))
    assert task.metadata["trouble"] == {"lights": ["room"]}
    assert await verdict(task, [], "Which room?") is Verdict.RIGHT
    assert await verdict(task, [{"name": "lights", "arguments": {}, "status": "OK"}]) is Verdict.WRONG
    with pytest.raises(DataError, match="an agent task, whose world is not simulated"):
        list(acebench(path=write({**row, "initial_config": {}})))


# -- When2Call ---------------------------------------------------------------------------------------------------------

REPLIES = {"direct": "It is 4.", "tool_call": "{}", "request_for_info": "Which?", "cannot_answer": "I cannot."}
WHEN = {"question": "Sum?", "tools": [json.dumps(LIGHTS)], "answers": REPLIES}


async def test_when2call_wants_a_call_where_a_call_is_right_and_nothing_elsewhere(write: Callable[..., Path]) -> None:
    call = [{"name": "lights", "arguments": {}, "status": "OK"}]
    for right in REPLIES:
        (task,) = when2call(path=write({"uuid": right, "correct_answer": right, **WHEN}))
        wants = right == "tool_call"
        assert await verdict(task, call) is (Verdict.RIGHT if wants else Verdict.WRONG)
        assert await verdict(task, [], REPLIES["cannot_answer"]) is (Verdict.WRONG if wants else Verdict.RIGHT)


def test_when2call_as_a_choice_has_the_published_replies_in_an_order_that_the_seed_draws(
    write: Callable[..., Path],
) -> None:
    rows = [{"uuid": str(n), "correct_answer": "request_for_info", **WHEN} for n in range(40)]
    tasks = list(when2call(path=write(*rows), form="choice", seed=1))
    assert tasks == list(when2call(path=write(*rows), form="choice", seed=1))
    assert tasks != list(when2call(path=write(*rows), form="choice", seed=2))
    assert {task.answer for task in tasks} == set("ABCD")
    for task in tasks:
        assert task.metadata["choices"]["ABCD".index(task.answer)] == "Which?"
    unknown: Any = "letters"
    with pytest.raises(DataError, match="form='letters'; expected 'calls' or 'choice'"):
        when2call(path="x", form=unknown)


# -- calls that use earlier results ------------------------------------------------------------------------------------


async def test_a_result_of_nestful_names_its_fields_as_the_gold_refers_to_them(write: Callable[..., Path]) -> None:
    calls = [
        {"name": "Hotels.Find", "arguments": {"city": "Rome"}, "label": "var1"},
        {"name": "Hotels.Book", "arguments": {"hotel": "$var1.hotel$", "days": "2"}, "label": "var2"},
        {"name": "var_result", "arguments": {"booked": "$var2$"}},
    ]
    spec = [
        {"name": "Hotels.Find", "arguments": {"city": {"required": True}}, "output_parameters": {"hotel": {}}},
        {"name": "Hotels.Book", "query_parameters": {"hotel": {"type": "number"}, "days": {}, "late": {}}},
    ]
    write(*spec, name="hotels-spec.json")
    (task,) = nestful(path=write({"input": "Book.", "output": json.dumps(calls)}, name="hotels-data.json"))
    assert task.metadata["answer_map"] == {"booked": "$var2$"}
    (found,) = await results(task, gold_calls(task)[:1])
    assert found == {"hotel": "$var1.hotel$"}
    # Who passes the value on gives the gold's argument, though the schema says that it is a number.
    passed = [*gold_calls(task)[:1], {**gold_calls(task)[1], "arguments": {"hotel": found["hotel"], "days": "2"}}]
    await results(task, passed)
    assert await verdict(task, passed) is Verdict.RIGHT
    passed[1]["arguments"]["hotel"] = "Ritz"
    assert await verdict(task, passed) is Verdict.WRONG


async def test_a_result_of_seal_tools_holds_what_the_gold_calls_it(write: Callable[..., Path]) -> None:
    calls = [
        {"api": "find", "parameters": {"crop": "oats"}, "responses": ["API_call_0", "API_call_1"]},
        {"api": "sow", "parameters": {"place": "API_call_1"}, "responses": ["API_call_2"]},
    ]
    row = {"id": "a", "query": "Sow oats.", "calling": calls}
    tool = {
        "api_description": "It does.",
        "parameters": {"crop": {"type": "str"}, "acres": {}},
        "required": ["crop", "acres"],
    }
    find = {"api_name": "find", **tool, "responses": {"soil": {}, "place": {}}}
    write(find, name="tool.jsonl")
    with pytest.raises(DataError, match=r"the tool 'sow' is not in .*tool.jsonl; expected its row there"):
        list(seal_tools(path=write(row)))
    write(find, {"api_name": "sow", **tool, "parameters": {"place": {"type": "int"}}}, name="tool.jsonl")
    (task,) = seal_tools(path=write(row))
    assert await results(task, gold_calls(task)) == [{"soil": "API_call_0", "place": "API_call_1"}, {}]
    assert await verdict(task, gold_calls(task)) is Verdict.RIGHT


# -- recorded results --------------------------------------------------------------------------------------------------

TURNS = [
    {"role": "User", "text": "Delete my alarm."},
    {"role": "API", "api_name": "Login", "param_dict": {"name": "ann"}, "result": {"output": {"token": "t1"}}},
    {"role": "AI", "text": "One moment."},
    {"role": "API", "api_name": "Delete", "param_dict": {"token": "t1"}, "result": {"output": "success"}},
]


async def test_a_dialogue_of_api_bank_has_a_task_for_each_call_with_what_came_before(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    info = "description = 'Logs in.'\ninput_parameters = {'name': {'type': 'str', 'description': 'Who.'}}"
    write({"name": "Login", "info": info}, {"name": "Delete", "info": "this is (no Python"}, name="apis.jsonl")
    with pytest.warns(DataWarning, match=r"apis.jsonl:2: a description that is no Python"):
        first, second = api_bank(path=write({"id": "d", "turns": TURNS}))
    assert (first.id, second.id) == ("d/1", "d/2")
    assert first.question == "User: Delete my alarm.\nMake the API call that comes next."
    assert 'API: Login({"name": "ann"}) gave {"token": "t1"}\nAI: One moment.' in second.question
    assert first.metadata["functions"][0]["description"] == "Logs in."
    assert await results(first, gold_calls(first)) == [{"token": "t1"}]
    assert await verdict(second, gold_calls(second)) is Verdict.RIGHT
    assert await verdict(second, gold_calls(first)) is Verdict.WRONG


def test_the_published_files_of_api_bank_are_dialogues_of_a_row_per_turn(write: Callable[..., Path]) -> None:
    folder = write(*TURNS, name="level-1/Delete-1.jsonl").parent
    write(*TURNS[:2], name="level-1/Login-1.jsonl")
    write({"role": "User", "text": "Hello."}, name="level-1/None-1.jsonl")
    python = "raise SystemExit\nclass Login(API):\n    description = 'Logs in.'\n    input_parameters = {'name': {}}\n"
    write(name="apis/login.jsonl").with_name("login.py").write_text(python)
    tasks = list(api_bank(path=folder, apis=folder.parent / "apis"))
    assert [task.id for task in tasks] == ["Delete-1/1", "Delete-1/2", "Login-1/1"]
    assert tasks[0].metadata["functions"][0]["description"] == "Logs in."


async def test_traject_offers_the_domain_gives_recorded_results_and_takes_numbers_with_or_without_quotes(
    write: Callable[..., Path],
) -> None:
    call = {"required parameters": [{"name": "city", "value": "Rome"}]}
    calls = [
        {"tool name": "Maps: Search", **call, "optional parameters": [{"name": "n", "value": "5"}]},
        {"tool name": "Maps: Search", **call, "executed_output": "[2]"},
    ]
    calls[0]["executed_output"] = "[1]"
    parameters = {"required_parameters": [{"name": "city", "type": "STRING"}], "optional_parameters": []}
    tools = [{"tool name": name, **parameters} for name in ("Maps: Search", "Maps: Route")]
    write(*tools, name="public/tools/Mapping_tool.json")
    file = write({"query": "Find.", "tool list": calls}, name="public/parallel/Mapping/hard_ver.json")
    (task,) = traject(path=file)
    assert task.id == "traject/Mapping/hard_ver/1"
    assert [each["name"] for each in task.metadata["functions"]] == ["Maps_Search", "Maps_Route"]
    assert await results(task, gold_calls(task)) == ["[1]", "[2]"]
    for number in (5, "5", None):
        made = gold_calls(task)
        made[0]["arguments"] = {"city": "Rome"} | ({} if number is None else {"n": number})
        assert await verdict(task, made) is Verdict.RIGHT, number
    made[0]["arguments"] = {"city": "Rome", "n": 6}
    assert await verdict(task, made) is Verdict.WRONG


async def test_a_world_gives_the_result_of_the_same_arguments_else_the_next_one(write: Callable[..., Path]) -> None:
    calls = [{"tool": "f", "arguments": {"a": n}, "output": f"r{n}"} for n in (1, 2)]
    (task,) = traject(path=write({"query": "Q", "calls": calls}))
    made = [{"name": "f", "arguments": {"a": n}} for n in (2, 9, 9, 9)]
    world = call_tasks.world(task)
    pool = ct.Pool.of(*world.members())
    async with ct.Executor() as executor:
        seen = [(await executor.run([ct.Call("f", each["arguments"])], pool))[0].content for each in made]
    assert seen == ["r2", "r1", "r2", "r2"]
    assert [each["arguments"]["a"] for each in world.state()] == [2, 9, 9, 9]


# -- the published data ------------------------------------------------------------------------------------------------

DATA = [
    ("acebench", "acebench/normal_atom_enum.jsonl", 12),
    ("acebench", "acebench/normal_atom_list.jsonl", 12),
    ("acebench", "acebench/normal_atom_object_deep.jsonl", 12),
    ("acebench", "acebench/normal_similar_api.jsonl", 12),
    ("acebench", "acebench/normal_single_turn_parallel_function.jsonl", 20),
    ("seal-tools", "seal_tools/calls.jsonl", 278),
    ("nestful", "nestful/sgd.json", 46),
    ("api-bank", "api_bank/dialogues.jsonl", 251),
    ("traject", "traject_bench/parallel/Music-hard.jsonl", 200),
    ("traject", "traject_bench/sequential/Gaming-traj.jsonl", 185),
]


def changed(calls: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Wrong answers: one call fewer, one more, one of another name, one value that is another."""
    yield calls[1:]
    yield [*calls, calls[0]]
    yield [{**calls[0], "name": "something_else"}, *calls[1:]]
    for name, value in calls[0]["arguments"].items():
        yield [{**calls[0], "arguments": {**calls[0]["arguments"], name: [value, "no"]}}, *calls[1:]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::concertino_bench.loaders.DataWarning")
@pytest.mark.parametrize(("name", "path", "count"), DATA, ids=[f"{each[0]}-{Path(each[1]).stem}" for each in DATA])
async def test_published_gold_runs_in_its_world_and_is_right_and_changed_gold_is_not(
    name: str, path: str, count: int, shared_data: Path
) -> None:
    tasks = list(SETS[name].load(path=shared_data / path))
    assert len(tasks) == count
    for number, task in enumerate(tasks):
        calls = gold_calls(task)
        assert await verdict(task, calls) is Verdict.RIGHT, task.id
        assert await verdict(task, [], json.dumps([{**call, "status": ""} for call in calls])) is Verdict.RIGHT, task.id
        for wrong in changed(calls):
            assert await verdict(task, wrong) is not Verdict.RIGHT, (task.id, wrong)
        if number < 20:
            await results(task, calls)


async def test_published_rows_in_which_nothing_is_to_be_called_are_graded_so(shared_data: Path) -> None:
    special = [f"acebench/special_{name}.jsonl" for name in ("error_param", "incomplete", "irrelevant")]
    tasks = [task for path in special for task in acebench(path=shared_data / path)]
    assert len(tasks) == 36
    assert [await verdict(task, [], "I cannot do that.") for task in tasks] == [Verdict.RIGHT] * 36
    rows = [json.loads(line) for line in (shared_data / "when2call/items_80.jsonl").read_text().splitlines()]
    for row, task in zip(rows, when2call(path=shared_data / "when2call/items_80.jsonl"), strict=True):
        for kind, reply in row["answers"].items():
            calls = row["correct_answer"] == "tool_call"
            expected = (kind == "tool_call") == calls
            # The published call may be of a tool that the row does not offer; it is a call all the same.
            assert (await verdict(task, [], reply) is Verdict.RIGHT) == expected, (task.id, kind)
