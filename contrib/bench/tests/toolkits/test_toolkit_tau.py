"""The airline of tau-bench: our tools reproduce what was recorded with theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError, Submission
from concertino_bench.graders import FinalState
from concertino_bench.toolkits import digest, replay, task_sets
from concertino_bench.toolkits.airline import Airline
from concertino_bench.toolkits.tau import AIRLINE_DIGEST, airline_tasks
from concertino_bench.toolkits.toolkit import Database
from linear import assert_linear

BENCH: Any = None  # this grader uses nothing of the pool
SETS = {each.name: each for each in task_sets()}


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "tau_bench_airline"


@pytest.fixture(scope="module")
def airline(folder: Path) -> Airline:
    return Airline(
        Database(
            {name: json.loads((folder / f"{name}.json").read_text()) for name in ("flights", "reservations", "users")}
        )
    )


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_the_database_is_the_one_that_the_recorded_digests_belong_to(airline: Airline) -> None:
    assert airline.database.digest() == digest(airline.database.data) == AIRLINE_DIGEST


@pytest.mark.slow
def test_every_recorded_digest_is_reproduced_by_replaying_the_golden_calls(folder: Path, airline: Airline) -> None:
    recorded = [row for row in rows(folder / "tasks_golden.jsonl") if row["gt_data_hash"]]
    wrong = []
    for row in recorded:
        calls = [call for call in row["golden_actions"] if call["name"] != "transfer_to_human_agents"]
        if replay(airline, calls).digest != row["gt_data_hash"]:
            wrong.append(row["task_id"])
    assert wrong == []
    assert len(recorded) == 22
    assert digest(airline.database.data) == AIRLINE_DIGEST


def test_recorded_calls_give_the_recorded_results_and_the_recorded_reward(folder: Path, airline: Airline) -> None:
    golden = {row["task_id"]: row["gt_data_hash"] for row in rows(folder / "tasks_golden.jsonl")}
    calls = rewards = 0
    for run in rows(folder / "recorded_calls.jsonl"):
        toolkit = airline.fresh()
        for call in run["calls"]:
            outcome = toolkit.call(call["call"], json.loads(call["arguments_raw"]))
            shown = outcome.content if isinstance(outcome.content, str) else json.dumps(outcome.content)
            text = shown if outcome.ok else f"Error: {outcome.error}"
            assert (text[: len(call["result"])], not outcome.ok) == (call["result"], call["is_error"])
            calls += 1
        if golden[run["task_id"]]:
            assert (toolkit.digest() == golden[run["task_id"]]) == (run["reward"] == 1.0)
            rewards += 1
    assert (calls, rewards) == (144, 22)


def test_the_fourteen_tools_take_what_the_published_schemas_take(folder: Path, airline: Airline) -> None:
    published = {
        tool["function"]["name"]: tool["function"]["parameters"]
        for tool in json.loads((folder / "tools_openai.json").read_text())
    }
    functions = airline.functions()
    assert set(functions) == set(published)
    for name, schema in published.items():
        own = functions[name].spec.input_schema
        assert set(own["properties"]) == set(schema["properties"])
        assert set(own.get("required", ())) == set(schema["required"])


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("book_reservation", {"user_id": "nobody"}, "user not found"),
        ("book_reservation", {"flights": [{"flight_number": "X", "date": "2024-05-20"}]}, "flight X not found"),
        ("book_reservation", {"flights": [{"flight_number": "HAT136", "date": "2023-01-01"}]}, "not found on date"),
        ("book_reservation", {"payment_methods": [{"payment_id": "x", "amount": 1}]}, "payment method x not found"),
        ("book_reservation", {"payment_methods": [{"payment_id": "certificate_7504069", "amount": 251}]}, "balance"),
        ("book_reservation", {"payment_methods": []}, "payment amount does not add up, total price is 255, but paid 0"),
    ],
)
def test_the_airline_refuses_in_the_recorded_words_and_changes_nothing(
    folder: Path, airline: Airline, name: str, change: dict[str, Any], error: str
) -> None:
    toolkit = airline.fresh()
    (first, *_) = rows(folder / "tasks_golden.jsonl")
    outcome = toolkit.call(name, {**first["golden_actions"][0]["kwargs"], **change})
    assert error in outcome.error
    assert toolkit.digest() == AIRLINE_DIGEST


@pytest.mark.parametrize(
    ("expression", "value"),
    [("2 * (3 + 4)", "14.0"), ("-5 + 2.345", "-2.65"), ("7 // 2", "3.0"), ("2**3", "8.0"), ("10/3", "3.33")],
)
def test_calculate_rounds_to_two_digits(expression: str, value: str) -> None:
    assert Airline({}).call("calculate", {"expression": expression}).content == value


@pytest.mark.parametrize("expression", ["__import__", "1/0", "(", "9**9**9", "", "()"])
def test_calculate_refuses_what_is_no_arithmetic(expression: str) -> None:
    outcome = Airline({}).call("calculate", {"expression": expression})
    assert outcome.error
    assert not outcome.broken


def test_at_most_three_certificates_are_sent(airline: Airline) -> None:
    toolkit = airline.fresh()
    sent = [toolkit.call("send_certificate", {"user_id": "mia_li_3668", "amount": 50}) for _ in range(4)]
    assert [outcome.ok for outcome in sent] == [True, True, True, False]


def test_loaded_tasks_carry_digest_golden_calls_and_facts_and_have_a_world(folder: Path) -> None:
    tasks = list(SETS["tau/airline"].load(path=folder))
    assert len(tasks) == 25
    assert sum(task.metadata["recorded"] for task in tasks) == 22
    assert {task.kind for task in tasks} == {"state"}
    (told,) = [task for task in tasks if task.id == "tau/airline-2"]
    assert (told.metadata["required"], told.metadata["recorded"]) == (["23553"], False)
    assert SETS["tau/airline"].world is not None
    world = SETS["tau/airline"].world(tasks[0])
    assert len(world.members()) == 14
    assert digest(world.state()) == AIRLINE_DIGEST


async def test_what_must_be_told_is_graded_with_the_final_state(folder: Path) -> None:
    world = SETS["tau/airline"].world
    assert world is not None
    told = [task for task in SETS["tau/airline"].load(path=folder) if task.metadata["required"]]
    assert len(told) == 3
    for task in told:
        own = world(task)
        idle = await FinalState().grade(task, Submission("I will not tell you.", state=own.state()), BENCH)
        assert idle.verdict == "wrong"
        assert "does not tell" in idle.reason
        for call in task.metadata["golden"]:
            own.toolkit.call(call["name"], call["arguments"])  # type: ignore[attr-defined]
        said = "; ".join(task.metadata["required"])
        assert (await FinalState().grade(task, Submission(said, state=own.state()), BENCH)).verdict == "right"
        silent = await FinalState().grade(task, Submission("Done.", state=own.state()), BENCH)
        assert (silent.verdict, silent.marks[0]) == ("wrong", True)


def test_a_world_hands_its_digest_over_without_copying_its_database(folder: Path) -> None:
    task = next(iter(SETS["tau/airline"].load(path=folder)))
    world = SETS["tau/airline"].world(task)  # type: ignore[misc]
    before = world.state()
    assert before.digest == AIRLINE_DIGEST
    assert_linear(lambda: [world.state() for _ in range(100)], 500_000)  # to copy it takes as long as 6,000 passes
    for call in task.metadata["golden"]:
        world.toolkit.call(call["name"], call["arguments"])
    after = world.state()
    assert (after.digest, digest(after)) == (task.metadata["digest"],) * 2
    assert (before.digest, digest(before)) == (AIRLINE_DIGEST,) * 2


def test_another_database_is_refused_before_anything_runs(folder: Path, tmp_path: Path) -> None:
    for file in folder.glob("*.json*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    users = json.loads((tmp_path / "users.json").read_text())
    users["mia_li_3668"]["dob"] = "1990-04-06"
    (tmp_path / "users.json").write_text(json.dumps(users))
    with pytest.raises(DataError, match=AIRLINE_DIGEST):
        next(airline_tasks(tmp_path))


def test_a_missing_or_wrong_file_is_named_with_the_next_step(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"flights\.json cannot be read"):
        next(airline_tasks(tmp_path))
    for file in folder.glob("*.json"):
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "tasks_golden.jsonl").write_text('{"task_id": 1}\n')
    with pytest.raises(DataError, match=r"tasks_golden\.jsonl:1: instruction, golden_actions"):
        next(airline_tasks(tmp_path))
    row = {"task_id": 1, "instruction": "x", "gt_data_hash": "a", "golden_actions": [{"name": "fly", "kwargs": {}}]}
    (tmp_path / "tasks_golden.jsonl").write_text(json.dumps(row) + "\nno json\n")
    with pytest.raises(DataError, match="golden call of 'fly'"):
        next(airline_tasks(tmp_path))
