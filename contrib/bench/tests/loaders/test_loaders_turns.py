"""BFCL's requests one by one, and the data that is read from its published programs without running them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from concertino.testing import ScriptedModel, make_pool
from concertino_bench import DataError, Submission, System, Task, TaskSet
from concertino_bench.graders import CallStates
from concertino_bench.loaders.function_calls import CallWorld, bfcl, world
from concertino_bench.machines import NEXT, Machines, by_turn, not_simulated
from concertino_bench.machines.published import Published
from concertino_bench.runner import Evaluation, Selection, evaluate

BENCH: Any = None  # this grader uses nothing of the pool
FARES = """
raise SystemExit("this file is never run")

class TravelAPI:
    def get_flight_cost(self):
        base_costs: dict = {("AAA", "BBB"): 100, ("BBB", "AAA"): 70}
        exchange_rates = {("USD", "EUR"): 0.5}
        airport_map = {"Here": "AAA", "There": "BBB"}
"""
LONG = """
CREDIT_CARD_EXTENSION = {"9": {"balance": 1}}
BOOKING_RECORD_EXTENSION = {}
FILE_CONTENT_EXTENSION = " and more"
POPULATE_FILE_EXTENSION = ["a.bin", "b.bin"]
FILES_TAIL_USED = ["short.txt"]
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with programs of the form of the published ones."""
    (tmp_path / "travel_booking.py").write_text(FARES)
    (tmp_path / "long_context.py").write_text(LONG)
    return tmp_path


def ask(machines: Machines, name: str, /, **arguments: Any) -> Any:
    return json.loads(machines.call(name, arguments))


# -- a travel agency ---------------------------------------------------------------------------------------------------


def agency(programs: Path, *, long: bool = False) -> Machines:
    card = {"1": {"card_number": "4", "balance": 500}}
    config = {"TravelAPI": {"credit_card_list": card, "access_token": "t"}}
    return Machines(["TravelAPI"], config, Published(str(programs), long))


FLIGHT = {"travel_from": "AAA", "travel_to": "BBB", "travel_date": "2024-01-01", "travel_class": "economy"}


def test_fares_are_data_of_the_published_program_which_is_never_run(programs: Path) -> None:
    travel = agency(programs)
    assert ask(travel, "get_flight_cost", **FLIGHT) == {"travel_cost_list": [200.0]}  # 2+0+2+4+0+1+0+1 is even
    assert ask(travel, "get_flight_cost", **{**FLIGHT, "travel_date": "2024-01-02", "travel_class": "first"}) == {
        "travel_cost_list": [500.0]
    }
    assert "no flight" in ask(travel, "get_flight_cost", **{**FLIGHT, "travel_to": "CCC"})["error"]
    assert ask(travel, "compute_exchange_rate", base_currency="EUR", target_currency="USD", value=3) == {
        "exchanged_value": 6.0
    }
    assert ask(travel, "get_nearest_airport_by_city", location="There") == {"nearest_airport": "BBB"}
    assert ask(travel, "list_all_airports") == ["AAA", "BBB"]


def test_a_booking_takes_the_fare_from_the_card_and_a_cancelled_one_gives_it_back(programs: Path) -> None:
    travel = agency(programs)
    booked = ask(travel, "book_flight", access_token="t", card_id="1", **FLIGHT)
    assert booked["booking_status"] is True
    assert ask(travel, "get_credit_card_balance", access_token="t", card_id="1") == {"card_balance": 300.0}
    number = booked["booking_id"]
    assert ask(travel, "retrieve_invoice", access_token="t", booking_id=number)["invoice"]["travel_cost"] == 200.0
    bought = {"access_token": "t", "insurance_type": "all", "booking_id": number, "insurance_cost": 50, "card_id": "1"}
    assert ask(travel, "purchase_insurance", **bought)["insurance_status"] is True
    assert "no booking" in ask(travel, "contact_customer_support", booking_id="x", message="?")["error"]
    assert ask(travel, "cancel_booking", access_token="t", booking_id=number) == {"cancel_status": True}
    assert travel.state()["TravelAPI"]["booking_record"] == {}
    assert ask(travel, "get_all_credit_cards")["credit_card_list"]["1"]["balance"] == 450.0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"access_token": "u"}, "token is not valid"),
        ({"card_id": "2"}, "no card 2"),
        ({"travel_date": "tomorrow"}, "not a date"),
        ({"travel_class": "wooden"}, "no class 'wooden'"),
        ({"travel_class": "first"}, "costs 1000.0"),
    ],
)
def test_what_cannot_be_booked_is_an_error_and_changes_nothing(programs: Path, change: Any, why: str) -> None:
    travel = agency(programs)
    told = ask(travel, "book_flight", **{"access_token": "t", "card_id": "1", **FLIGHT, **change})
    assert told["booking_status"] is False
    assert why in told["error"]
    assert travel.state() == agency(programs).state()


def test_a_login_draws_the_same_token_each_time_and_names_the_traveller(programs: Path) -> None:
    login = dict.fromkeys(("client_id", "client_secret", "refresh_token"), "x")
    login |= {"grant_type": "read_write", "user_first_name": "Ann", "user_last_name": "Lee"}
    travel, other = agency(programs), agency(programs)
    token = ask(travel, "authenticate_travel", **login)["access_token"]
    assert token == ask(other, "authenticate_travel", **login)["access_token"]
    person = {"first_name": "Ann", "last_name": "Lee", "date_of_birth": "1990-05-05", "passport_number": "US1"}
    assert ask(travel, "verify_traveler_information", **person) == {"verification_status": True}
    for change in ({"first_name": "Bo"}, {"date_of_birth": "2010-01-01"}, {"passport_number": "DE1"}):
        assert ask(travel, "verify_traveler_information", **{**person, **change})["verification_status"] is False
    limit = ask(travel, "set_budget_limit", access_token=token, budget_limit=1000)
    assert limit == {"budget_limit": 1000.0}
    assert "less than the budget" in ask(travel, "book_flight", access_token=token, card_id="1", **FLIGHT)["error"]


def test_long_answers_come_from_the_published_texts(programs: Path) -> None:
    assert ask(agency(programs, long=True), "get_all_credit_cards")["credit_card_list"].keys() == {"9", "1"}
    assert ask(agency(programs, long=True), "get_flight_cost", **FLIGHT) == {"travel_cost_list": [200.0, 140.0]}
    note = {"short.txt": {"type": "file", "content": "a"}, "long.txt": {"type": "file", "content": "a"}}
    config = {"GorillaFileSystem": {"root": {"home": {"type": "directory", "contents": note}}}}
    shell = Machines(["GorillaFileSystem"], config, Published(str(programs), long=True))
    assert ask(shell, "ls")["current_directory_content"] == ["a.bin", "b.bin", "short.txt", "long.txt"]
    assert ask(shell, "cat", file_name="long.txt") == {"file_content": "a and more"}
    assert ask(shell, "cat", file_name="short.txt") == {"file_content": "a"}


def test_a_constant_that_no_file_has_is_an_error_that_says_where_it_is_published(tmp_path: Path) -> None:
    (tmp_path / "travel_booking.py").write_text("base_costs = {\n")
    with pytest.raises(ValueError, match=r"neither travel_booking.py nor long_context.py assigns base_costs"):
        Published(str(tmp_path)).constant("base_costs")


# -- one by one --------------------------------------------------------------------------------------------------------


def loaded(shared_data: Path, category: str = "base", **options: Any) -> list[Task]:
    tasks = bfcl(path=shared_data / "bfcl" / f"multi_turn_{category}.jsonl", one_by_one=True, **options)
    return [task for task in tasks if not not_simulated(task)]


def play(task: Task, *, until: int = 1_000) -> CallWorld:
    """A world in which the gold calls were made, each in its turn."""
    acted = world(task)
    tools: dict[str, Any] = {tool.name: tool for tool in acted.members()}
    for turn, calls in enumerate(task.metadata["turn_calls"][:until]):
        if turn:
            tools[NEXT].function({})
        for call in calls:
            tools[call["name"]].function(call["arguments"])
    return acted


async def graded(task: Task, calls: Any) -> Any:
    return await CallStates().grade(task, Submission("", state=calls), BENCH)


@pytest.mark.parametrize("category", ["base", "miss_func", "miss_param"])
async def test_gold_calls_are_right_in_their_turns_and_wrong_in_the_first(shared_data: Path, category: str) -> None:
    for task in loaded(shared_data, category):
        calls = play(task).state()
        assert (await graded(task, calls)).verdict == "right"
        early = [call for call in calls if call["name"] != NEXT]
        filled = [turn for turn in task.metadata["turn_calls"] if turn]
        if len(filled) > 1:
            seen = await graded(task, early)
            assert seen.verdict == "wrong"
            assert seen.reason.startswith("turn ")


async def test_a_run_that_ends_before_the_last_request_is_wrong_in_the_turn_it_did_not_reach(shared_data: Path) -> None:
    task = next(task for task in loaded(shared_data) if all(task.metadata["turn_calls"]))
    last = len(task.metadata["turn_calls"])
    seen = await graded(task, play(task, until=last - 1).state())
    assert (seen.verdict, seen.marks) == ("wrong", (True,) * (last - 1) + (False,))
    assert seen.reason.startswith(f"turn {last}: nothing was called")


def test_the_question_holds_the_first_request_alone_and_the_tool_gives_the_others(shared_data: Path) -> None:
    task = loaded(shared_data)[0]
    first, second = (task.metadata["turns"][turn][0]["content"] for turn in (0, 1))
    assert first in task.question
    assert second not in task.question
    ask_next = next(tool for tool in world(task).members() if tool.name == NEXT).function
    told = [ask_next({}) for _ in range(len(task.metadata["turns"]) + 1)]
    assert told[0] == second
    assert told[-2:] == ["There is no further request. Give your final answer."] * 2


def test_a_function_that_comes_later_does_nothing_before_its_turn(shared_data: Path) -> None:
    task = next(task for task in loaded(shared_data, "miss_func") if task.metadata.get("missed_function"))
    ((turn, (name, *_)),) = list(task.metadata["missed_function"].items())[:1]
    acted = world(task)
    tools: dict[str, Any] = {tool.name: tool for tool in acted.members()}
    assert "cannot be called yet" in tools[name].function({})
    assert acted.state() == []
    told = [tools[NEXT].function({}) for _ in range(int(turn))]
    assert name in told[-1]
    assert "cannot be called yet" not in tools[name].function({})
    # So it is with a trace, which has the refused call.
    early = {"name": name, "arguments": {}}
    again = {"name": NEXT, "arguments": {}}
    parted = by_turn([early, *[again] * int(turn), early], task)
    assert [place for place, calls in enumerate(parted) if calls] == [int(turn)]


def test_a_folder_of_programs_that_is_none_is_an_error(shared_data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"programs=.*not a folder; expected bfcl_eval"):
        loaded(shared_data, programs=tmp_path / "none")


def test_a_run_gets_its_requests_one_by_one_and_is_graded_by_each(shared_data: Path, tmp_path: Path) -> None:
    task = next(task for task in loaded(shared_data) if all(task.metadata["turn_calls"]))
    said: list[Any] = []
    for turn, calls in enumerate(task.metadata["turn_calls"]):
        said += [[(NEXT, {})]] if turn else []
        said += [[(call["name"], call["arguments"])] for call in calls]
    leader = ScriptedModel(*said, "Done.", native=True)
    home = TaskSet("one", "One task.", lambda: iter([task]), world)
    evaluation = Evaluation([Selection(home)], [System("alone", "single-with-tools")])
    out = tmp_path / "results.jsonl"
    outcome = asyncio.run(evaluate(evaluation, make_pool(orchestrator=leader), out, graders=[CallStates()]))
    (item,) = outcome.items
    assert item.verdict == "right", item.reason
    assert item.reason.endswith("after each turn")
    assert item.calls == len(said)
