"""The simulated programs of BFCL's multi-turn tasks, and the grader that compares where calls lead."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import Submission, Task
from concertino_bench.graders import CallStates
from concertino_bench.loaders.function_calls import CallWorld, bfcl
from concertino_bench.machines import Machines, machines_of, missing, not_simulated

BENCH: Any = None  # this grader uses nothing of the pool


def ask(machines: Machines, name: str, /, **arguments: Any) -> Any:
    return json.loads(machines.call(name, arguments))


def gold_of(task: Task) -> list[Any]:
    return [call for turn in task.metadata["turn_calls"] for call in turn]


async def verdict(task: Task, calls: list[Any]) -> str:
    return (await CallStates().grade(task, Submission("", state=calls), BENCH)).verdict.value


@pytest.mark.parametrize(("category", "simulated", "others"), [("base", 19, 6), ("miss_func", 7, 3)])
async def test_gold_calls_lead_to_the_gold_states_and_each_of_them_is_needed(
    shared_data: Path, category: str, simulated: int, others: int
) -> None:
    tasks = list(bfcl(path=shared_data / "bfcl" / f"multi_turn_{category}.jsonl"))
    able = [task for task in tasks if not not_simulated(task)]
    assert (len(able), len(tasks) - len(able)) == (simulated, others)
    for task in able:
        gold = gold_of(task)
        assert await verdict(task, gold) == "right"
        assert await verdict(task, []) == "wrong"
        for place in range(len(gold)):
            assert await verdict(task, gold[:place] + gold[place + 1 :]) == "wrong", (task.id, gold[place])


@pytest.fixture
def published() -> Path:
    folder = os.environ.get("BFCL_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("BFCL_DATA names no folder; set it to bfcl_eval/data of the published repository")
    return Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize("category", ["base", "miss_func", "miss_param", "long_context"])
async def test_the_gold_calls_of_the_published_files_lead_to_their_states(published: Path, category: str) -> None:
    tasks = list(bfcl(path=published / f"BFCL_v4_multi_turn_{category}.json"))
    assert [task.id for task in tasks if await verdict(task, gold_of(task)) != "right"] == []
    assert len(tasks) == 200


async def test_another_way_to_the_same_state_is_right_and_one_call_too_many_that_changes_it_is_wrong(
    shared_data: Path,
) -> None:
    tasks = bfcl(path=shared_data / "bfcl" / "multi_turn_base.jsonl")
    task = next(task for task in tasks if task.metadata["involved_classes"] == ["TradingBot"])
    gold = gold_of(task)
    looked = {"name": "get_account_info", "arguments": {}}
    assert await verdict(task, [looked, *gold, looked]) == "right"
    changed = {"name": "fund_account", "arguments": {"amount": 1}}
    logged_in = {"name": "trading_login", "arguments": {"username": "a", "password": "b"}}
    assert await verdict(task, [*gold, logged_in, changed]) == "wrong"


def test_what_cannot_be_graded_is_said_before_anybody_is_asked(shared_data: Path) -> None:
    tasks = list(bfcl(path=shared_data / "bfcl" / "multi_turn_base.jsonl"))
    travel = next(task for task in tasks if "TravelAPI" in task.metadata["involved_classes"])
    with pytest.raises(
        ValueError, match=r"fares of TravelAPI are in .*travel_booking.py; give programs=.*`call-match`"
    ):
        CallStates().check(travel)
    with pytest.raises(ValueError, match="no calls by turn"):
        CallStates().check(Task("t", "?", (), "calls"))
    shell = next(task for task in tasks if not not_simulated(task))
    long = Task("t", "?", (), "calls", metadata={**shell.metadata, "category": "multi_turn_long_context"})
    with pytest.raises(ValueError, match=r"long texts are in .*long_context.py"):
        CallStates().check(long)
    with pytest.raises(ValueError, match="no simulated program for PhoneAPI; there are GorillaFileSystem"):
        Machines(["PhoneAPI"], {})
    assert missing(["MathAPI", "PhoneAPI"]) == ["PhoneAPI"]


async def test_a_run_gets_the_answers_of_the_program_and_is_graded_by_where_its_calls_lead(shared_data: Path) -> None:
    tasks = bfcl(path=shared_data / "bfcl" / "multi_turn_base.jsonl")
    task = next(task for task in tasks if not not_simulated(task))
    world = CallWorld(task)
    tools: dict[str, Any] = {tool.name: tool for tool in world.members()}
    answers = [tools[call["name"]].function(call["arguments"]) for call in gold_of(task)]
    assert answers == [machines_of(task).call(*answer) for answer in [_first(task)]] + answers[1:]
    assert await verdict(task, world.state()) == "right"


def _first(task: Task) -> tuple[str, Any]:
    first = gold_of(task)[0]
    return first["name"], first["arguments"]


# -- programs ----------------------------------------------------------------------------------------------------------


def test_an_account_trades_only_when_logged_in_with_money_enough() -> None:
    account = Machines(["TradingBot"], {"TradingBot": {"stocks": {"X": {"price": 2.0, "percent_change": 0.5}}}})
    order = {"order_type": "Buy", "symbol": "X", "price": 2.0, "amount": 10}
    assert "error" in ask(account, "place_order", **order)
    assert ask(account, "trading_login", username="a", password="b") == {"status": "Logged in successfully"}
    assert "Insufficient" in ask(account, "place_order", **{**order, "amount": 1_000_000})["error"]
    placed = ask(account, "place_order", **order)
    assert (placed["order_id"], placed["status"]) == (12446, "Pending")
    assert ask(account, "get_order_details", order_id=12446)["status"] == "Open"
    assert ask(account, "cancel_order", order_id=12446) == {"order_id": 12446, "status": "Cancelled"}
    assert "completed" in ask(account, "cancel_order", order_id=12345)["error"]
    assert "closed" in ask(account, "withdraw_funds", amount=5)["error"]
    assert ask(account, "fund_account", amount=5)["new_balance"] == 10005.0
    assert len(ask(account, "get_transaction_history")["transaction_history"]) == 1
    assert ask(account, "get_transaction_history", start_date="2030-01-01") == {"transaction_history": []}
    assert ask(account, "add_to_watchlist", stock="X") == {"watchlist": ["NVDA", "X"]}
    assert ask(account, "filter_stocks_by_price", stocks=["X", "Y"], min_price=1, max_price=3) == {
        "filtered_stocks": ["X"]
    }
    assert "X" in ask(account, "notify_price_change", stocks=["X"], threshold=0.5)["notification"]


def test_a_car_starts_only_with_locked_doors_and_the_brake_pressed_fully() -> None:
    car = Machines(["VehicleControlAPI"], {})
    doors = ["driver", "passenger", "rear_left", "rear_right"]
    assert "driver" in ask(car, "startEngine", ignitionMode="START")["error"]
    assert ask(car, "lockDoors", unlock=False, door=doors) == {"lockStatus": "locked", "remainingUnlockedDoors": 0}
    ask(car, "pressBrakePedal", pedalPosition=0.5)
    assert "fully" in ask(car, "startEngine", ignitionMode="START")["error"]
    ask(car, "pressBrakePedal", pedalPosition=1)
    assert ask(car, "startEngine", ignitionMode="START")["engineState"] == "running"
    assert "Invalid speed" in ask(car, "setCruiseControl", speed=62, activate=True, distanceToNextVehicle=9)["error"]
    assert ask(car, "setCruiseControl", speed=60, activate=True, distanceToNextVehicle=9)["cruiseStatus"] == "active"
    assert "capacity" in ask(car, "fillFuelTank", fuelAmount=51)["error"]
    assert ask(car, "estimate_distance", cityA="74532", cityB="83214") == {"distance": 750.0}
    assert ask(car, "displayCarStatus", option="doors")["doorStatus"]["driver"] == "locked"
    assert "brakePedalForce" not in car.state()["VehicleControlAPI"]


def test_messages_tickets_and_posts_need_a_login_and_count_their_ids() -> None:
    desk = Machines(["MessageAPI", "TicketAPI", "TwitterAPI"], {"TwitterAPI": {"authenticated": True}})
    assert "error" in ask(desk, "send_message", receiver_id="USR002", message="hi")
    assert ask(desk, "message_login", user_id="USR001")["login_status"] is True
    ids = {ask(desk, "send_message", receiver_id="USR002", message="hi")["message_id"]["new_id"] for _ in range(3)}
    assert len(ids) == 3
    assert ask(desk, "search_messages", keyword="HI")["results"][-1]["message"] == "hi"
    assert ask(desk, "delete_message", receiver_id="USR002")["deleted_status"] is True
    assert ask(desk, "add_contact", user_name="Eve")["user_id"] == "USR005"
    assert "error" in ask(desk, "create_ticket", title="x")
    assert ask(desk, "ticket_login", username="ann", password="x") == {"success": True}
    assert ask(desk, "create_ticket", title="x", priority=3)["id"] == 1
    assert "between 1 and 5" in ask(desk, "create_ticket", title="x", priority=9)["error"]
    assert "Invalid fields" in ask(desk, "edit_ticket", ticket_id=1, updates={"owner": "me"})["error"]
    assert "closed" in ask(desk, "close_ticket", ticket_id=1)["status"]
    assert "already" in ask(desk, "close_ticket", ticket_id=1)["error"]
    assert [each["id"] for each in ask(desk, "get_user_tickets", status="closed")] == [1]
    assert ask(desk, "post_tweet", content="Tea", tags=["#Green"])["id"] == 0
    assert [each["id"] for each in ask(desk, "search_tweets", keyword="#green")] == [0]
    assert ask(desk, "retweet", tweet_id=0) == {"retweet_status": "Successfully retweeted"}
    assert ask(desk, "retweet", tweet_id=0) == {"retweet_status": "Already retweeted"}
    assert "not found" in ask(desk, "comment", tweet_id=7, comment_content="?")["error"]
    assert ask(desk, "get_user_stats", username="john") == {"tweet_count": 1, "following_count": 2, "retweet_count": 1}


def files() -> Machines:
    text = {"type": "file", "content": "b b\na\n"}
    notes = {"type": "directory", "contents": {"a.txt": text, ".hidden": {"type": "file", "content": ""}}}
    root = {"shop": {"type": "directory", "contents": {"notes": notes, "top.txt": text}}}
    return Machines(["GorillaFileSystem"], {"GorillaFileSystem": {"root": root}})


def test_a_shell_reads_moves_and_removes_in_the_folder_where_it_is() -> None:
    shell = files()
    assert ask(shell, "find", name="a.txt") == {"matches": ["./notes/a.txt"]}
    assert ask(shell, "cd", folder="notes") == {"current_working_directory": "notes"}
    assert ask(shell, "pwd") == {"current_working_directory": "/shop/notes"}
    assert ask(shell, "ls") == {"current_directory_content": ["a.txt"]}
    assert ask(shell, "ls", a=True) == {"current_directory_content": ["a.txt", ".hidden"]}
    assert ask(shell, "wc", file_name="a.txt", mode="w") == {"count": 3, "type": "words"}
    assert ask(shell, "sort", file_name="a.txt") == {"sorted_content": "a\nb b"}
    assert ask(shell, "grep", file_name="a.txt", pattern="b") == {"matching_lines": ["b b"]}
    assert ask(shell, "tail", file_name="a.txt", lines=1) == {"last_lines": "a"}
    assert ask(shell, "du") == {"disk_usage": "6 bytes"}
    assert ask(shell, "mkdir", dir_name="old") is None
    assert ask(shell, "cp", source="a.txt", destination="old") == {"result": "'a.txt' copied to 'old/a.txt'"}
    assert ask(shell, "echo", content="new", file_name="a.txt") is None
    assert ask(shell, "cat", file_name="a.txt") == {"file_content": "new"}
    assert ask(shell, "mv", source="a.txt", destination="c.txt") == {"result": "'a.txt' moved to 'c.txt'"}
    assert "not empty" in ask(shell, "rmdir", dir_name="old")["error"]
    assert ask(shell, "rm", file_name="old") == {"result": "'old' removed"}
    assert ask(shell, "cd", folder="..") == {}
    assert "root" in ask(shell, "cd", folder="..")["error"]
    assert shell.state()["GorillaFileSystem"]["root"]["notes"] == {".hidden": "", "c.txt": "new"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cd", {"folder": "notes/deeper"}),
        ("cd", {"folder": "top.txt"}),
        ("cat", {"file_name": "notes"}),
        ("cat", {"file_name": "none"}),
        ("touch", {"file_name": "top.txt"}),
        ("mkdir", {"dir_name": "a/b"}),
        ("echo", {"content": "x", "file_name": "none"}),
        ("mv", {"source": "top.txt", "destination": "notes/x"}),
        ("mv", {"source": "notes", "destination": "notes"}),
        ("mv", {"source": "none", "destination": "x"}),
        ("cp", {"source": "notes", "destination": "top.txt"}),
        ("rmdir", {"dir_name": "top.txt"}),
        ("wc", {"file_name": "top.txt", "mode": "z"}),
        ("diff", {"file_name1": "top.txt", "file_name2": "none"}),
        ("find", {"path": "none"}),
    ],
)
def test_what_a_shell_cannot_do_is_an_error_and_changes_nothing(name: str, arguments: dict[str, Any]) -> None:
    shell = files()
    assert "error" in ask(shell, name, **arguments)
    assert shell.state() == files().state()


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("mean", {"numbers": [1, 2, 6]}, {"result": 3.0}),
        ("divide", {"a": 1, "b": 0}, {"error": "Cannot divide by zero"}),
        ("power", {"base": 9, "exponent": 10**9}, {"error": "The exponent is too large"}),
        ("imperial_si_conversion", {"value": 10, "unit_in": "celsius", "unit_out": "fahrenheit"}, {"result": 50.0}),
        ("si_unit_conversion", {"value": 2, "unit_in": "km", "unit_out": "m"}, {"result": 2000.0}),
        ("logarithm", {"value": 100, "base": 10, "precision": 5}, {"result": 2.0}),
        ("add", {"a": 1}, None),
        ("add", {"a": "1", "b": 2}, None),
        ("fly", {}, None),
    ],
)
def test_a_calculator_answers_with_a_result_or_with_an_error(name: str, arguments: Any, answer: Any) -> None:
    found = json.loads(Machines(["MathAPI"], {}).call(name, arguments))
    assert found == answer if answer else "error" in found


def test_a_first_state_is_never_changed_by_calls() -> None:
    config = {"TicketAPI": {"current_user": "ann", "ticket_queue": []}}
    ask(Machines(["TicketAPI"], config), "create_ticket", title="x")
    assert config == {"TicketAPI": {"current_user": "ann", "ticket_queue": []}}
    assert Machines(["TicketAPI"], {}).state()["TicketAPI"]["ticket_queue"] == []
