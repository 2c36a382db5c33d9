"""The domains of tau2-bench: golden calls lead to the golden states, on the shared data and on the published folder.

`TAU2_DATA` names the folder `data/tau2/domains` of a copy of the published repository; without it, what needs it is
skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, cast

import pytest
from concertino import CallFailed
from concertino_bench import DataError, Submission
from concertino_bench.graders import FinalState
from concertino_bench.toolkits import Domain, Toolkit, ToolkitWorld, reads, task_sets, writes
from concertino_bench.toolkits.airline import Airline
from concertino_bench.toolkits.board import TaskBoard
from concertino_bench.toolkits.retail import Retail
from concertino_bench.toolkits.tau import AIRLINE_DIGEST
from concertino_bench.toolkits.tau2 import AIRLINE, MOCK, RETAIL, TELECOM

BENCH: Any = None  # this grader uses nothing of the pool
SETS = {each.name: each for each in task_sets()}


@pytest.fixture
def shared(shared_data: Path) -> Path:
    return shared_data / "tau2_bench"


@pytest.fixture(scope="module")
def published() -> Path:
    named = os.environ.get("TAU2_DATA", "")
    if not named or not Path(named).is_dir():
        pytest.skip(
            "TAU2_DATA names no folder, so 114 tasks of retail, 114 of telecom (2,285 in its full file) and 50 of "
            "airline are not tried; set it to data/tau2/domains of the published repository"
        )
    return Path(named)


def world_of(task: Any) -> ToolkitWorld:
    make = SETS[task.metadata["domain"]].world
    assert make is not None
    world = make(task)
    assert isinstance(world, ToolkitWorld)
    return world


async def call(world: ToolkitWorld, name: str, arguments: dict[str, Any]) -> None:
    """As a run does: through the tools, so that the world knows of it. What a tool refuses changes nothing."""
    (tool,) = [each for each in world.members() if each.name == name]
    # Some golden calls are refused on purpose.
    with contextlib.suppress(CallFailed):
        await cast(Any, tool.function)(arguments)


async def verdicts(task: Any) -> tuple[str, str]:
    """Of a run that does nothing, and of one that makes the golden calls and tells what is to be told."""
    idle = await FinalState().grade(task, Submission("", state=world_of(task).state()), BENCH)
    world = world_of(task)
    for each in task.metadata["golden"]:
        await call(world, each["name"], each["arguments"])
    for each in task.metadata["actions"]:
        if each["name"] == "transfer_to_human_agents":
            await call(world, each["name"], each["arguments"])
    said = "; ".join(str(fact) for fact in task.metadata["required"])
    done = await FinalState().grade(task, Submission(said, state=world.state()), BENCH)
    return idle.verdict.value, done.verdict.value


# -- telecom -----------------------------------------------------------------------------------------------------------


async def test_the_golden_calls_of_telecom_lead_where_the_tasks_assert_and_nothing_else_does(shared: Path) -> None:
    tasks = list(TELECOM.tasks(shared / "telecom"))
    assert len(tasks) == 20
    assert TELECOM.left_out(shared / "telecom") == []
    for task in tasks:
        assert task.metadata["faults"] == []
        # A task whose assertions hold from the beginning asks for a hand-over, which an idle run does not make.
        assert await verdicts(task) == ("wrong", "right"), task.id


async def test_each_golden_call_of_telecom_is_needed(shared: Path) -> None:
    short = total = 0
    for task in TELECOM.tasks(shared / "telecom"):
        golden = task.metadata["golden"]
        for left_out in range(len(golden)):
            world = world_of(task)
            for place, each in enumerate(golden):
                if place != left_out:
                    await call(world, each["name"], each["arguments"])
            grade = await FinalState().grade(task, Submission("", state=world.state()), BENCH)
            short += grade.verdict == "wrong"
            total += 1
    assert (short, total) == (25, 25)


async def test_the_tested_side_has_no_tools_of_the_user_where_there_is_one(shared: Path) -> None:
    alone = next(iter(TELECOM.tasks(shared / "telecom")))
    spoken = next(iter(TELECOM.tasks(shared / "telecom", user="customer")))
    both = {each.name for each in world_of(alone).members()}
    agents = {each.name for each in world_of(spoken).members()}
    assert len(both) == 43
    assert agents == {name for name in both if TELECOM.toolkit({}).functions()[name].by == "agent"} | {"talk_to_user"}
    assert "toggle_roaming" in both - agents
    assert not any(name.startswith(("assert_", "break_")) for name in both)


def test_a_bill_that_waits_for_payment_is_a_request_on_the_phone_and_paying_settles_it(shared: Path) -> None:
    (task, *_) = TELECOM.tasks(shared / "telecom")
    phone = world_of(task).toolkit
    bill = next(key for key, each in phone.view()["bills"].items() if each["customer_id"] == "C1001")
    assert "No payment" in phone.call("check_payment_request", {}).content
    assert phone.call("send_payment_request", {"customer_id": "C1001", "bill_id": bill}).ok
    assert "awaiting" in phone.call("send_payment_request", {"customer_id": "C1001", "bill_id": bill}).error
    assert bill in phone.call("check_payment_request", {}).content
    assert phone.call("make_payment", {}).ok
    assert phone.view()["bills"][bill]["status"] == "Paid"
    assert "No payment" in phone.call("check_payment_request", {}).content


def test_a_phone_has_no_service_while_its_line_is_suspended(shared: Path) -> None:
    (task, *_) = TELECOM.tasks(shared / "telecom")
    phone = world_of(task).toolkit
    line = {"customer_id": "C1001", "line_id": "L1002"}
    for name, arguments, service in (
        ("suspend_line", {**line, "reason": "lost"}, "no_service"),
        ("resume_line", line, "connected"),
    ):
        assert phone.call(name, arguments).ok
        phone.call("reboot_device", {})
        assert phone.ask("assert_service_status", {"expected_status": service}).content is True


# -- retail ------------------------------------------------------------------------------------------------------------


SHOP: dict[str, Any] = {
    "products": {
        "p": {
            "name": "Lamp",
            "product_id": "p",
            "variants": {
                key: {"item_id": key, "options": {"colour": key}, "available": key != "sold", "price": price}
                for key, price in (("red", 10.0), ("blue", 12.5), ("green", 20.0), ("sold", 1.0))
            },
        }
    },
    "users": {
        "ann": {
            "user_id": "ann",
            "name": {"first_name": "Ann", "last_name": "Lee"},
            "email": "ann@example.com",
            "address": {"zip": "1"},
            "payment_methods": {
                "card": {"source": "credit_card", "id": "card"},
                "gift": {"source": "gift_card", "id": "gift", "balance": 11.0},
            },
            "orders": ["#1", "#2"],
        }
    },
    "orders": {
        key: {
            "order_id": key,
            "user_id": "ann",
            "items": [
                {"name": "Lamp", "product_id": "p", "item_id": "red", "price": 10.0, "options": {"colour": "red"}}
                for _ in range(2)
            ],
            "status": status,
            "payment_history": [{"transaction_type": "payment", "amount": 20.0, "payment_method_id": "card"}],
        }
        for key, status in (("#1", "pending"), ("#2", "delivered"))
    },
}


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("cancel_pending_order", {"order_id": "#2", "reason": "no longer needed"}, "Only a pending"),
        ("cancel_pending_order", {"order_id": "#9", "reason": "no longer needed"}, "Order not found"),
        ("exchange_delivered_order_items", {"item_ids": ["red"], "new_item_ids": ["sold"]}, "cannot be had"),
        ("exchange_delivered_order_items", {"item_ids": ["red"] * 3, "new_item_ids": ["blue"] * 3}, "not so often"),
        ("exchange_delivered_order_items", {"item_ids": ["red"], "new_item_ids": []}, "as many"),
        ("exchange_delivered_order_items", {"item_ids": ["red"] * 2, "new_item_ids": ["green"] * 2}, "not enough"),
        ("return_delivered_order_items", {"item_ids": ["blue"]}, "not found"),
        ("modify_pending_order_items", {"item_ids": ["red"], "new_item_ids": ["red"]}, "for itself"),
        ("modify_pending_order_payment", {"order_id": "#1"}, "not enough"),
    ],
)
def test_the_shop_refuses_and_changes_nothing(name: str, arguments: dict[str, Any], error: str) -> None:
    shop = Retail(SHOP)
    order = "#1" if "pending" in name else "#2"
    paid = {} if "cancel" in name else {"payment_method_id": "gift"}
    given = {"order_id": order, **paid, **arguments}
    assert error in shop.call(name, given).error
    assert shop.digest() == shop.database.digest()


def test_a_changed_order_keeps_account_of_what_was_paid() -> None:
    shop = Retail(SHOP)
    given = {"order_id": "#1", "item_ids": ["red"], "new_item_ids": ["blue"], "payment_method_id": "gift"}
    assert shop.call("modify_pending_order_items", given).ok
    order, user = shop.view()["orders"]["#1"], shop.view()["users"]["ann"]
    assert [item["item_id"] for item in order["items"]] == ["blue", "red"]
    paid = {"transaction_type": "payment", "amount": 2.5, "payment_method_id": "gift"}
    assert order["payment_history"][-1] == paid
    assert user["payment_methods"]["gift"]["balance"] == 8.5
    assert "Only a pending" in shop.call("modify_pending_order_items", given).error
    returned = {"order_id": "#2", "item_ids": ["red"], "payment_method_id": "card"}
    assert shop.call("return_delivered_order_items", returned).content["status"] == "return requested"


def test_a_gift_card_pays_at_once_and_has_its_money_back_when_the_order_is_cancelled() -> None:
    rich = json.loads(json.dumps(SHOP).replace("11.0", "50.0"))
    shop = Retail(rich)
    assert shop.call("modify_pending_order_payment", {"order_id": "#1", "payment_method_id": "gift"}).ok
    assert shop.view()["users"]["ann"]["payment_methods"]["gift"]["balance"] == 30.0
    assert shop.call("cancel_pending_order", {"order_id": "#1", "reason": "ordered by mistake"}).ok
    assert shop.view()["users"]["ann"]["payment_methods"]["gift"]["balance"] == 50.0
    assert shop.view()["orders"]["#1"]["status"] == "cancelled"


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "count"), [(RETAIL, 114), (TELECOM, 20), (MOCK, 9), (AIRLINE, 50)])
async def test_the_published_tasks_of_a_domain_are_solved_by_their_golden_calls(
    published: Path, domain: Domain, count: int
) -> None:
    folder = published / domain.name.rpartition("/")[2]
    if not any((folder / name).is_file() for name in ("db.json", "db.toml")):
        pytest.skip(f"{folder} has no database, so its {count} tasks are not tried; copy db.json there")
    tasks = list(domain.tasks(folder))
    assert len(tasks) >= count
    # Nothing says how the assertions of a task without golden calls come to hold.
    golden = [task for task in tasks if task.metadata["golden"] or not task.metadata["assertions"]]
    wrong = [task.id for task in golden if (await verdicts(task))[1] != "right"]
    assert wrong == []


# -- mock and airline --------------------------------------------------------------------------------------------------


async def test_the_tasks_of_the_mock_domain_are_solved_and_the_one_that_contradicts_itself_is_named(
    shared: Path,
) -> None:
    tasks = list(MOCK.tasks(shared / "mock"))
    (other,) = MOCK.left_out(shared / "mock")
    assert len(tasks) == 9
    assert other.id == "update_task_with_user_tools"
    assert "do not lead where it asserts" in other.reason
    assert [task.metadata["faults"] for task in tasks] == [[]] * len(tasks)
    asserted = [task for task in tasks if not task.metadata["golden"] and task.metadata["assertions"]]
    assert [(await verdicts(task))[0] for task in asserted] == ["wrong"] * len(asserted)
    judged = [task for task in tasks if task.metadata["statements"]]
    assert {task.metadata["grader"] for task in judged} == {"judged-state"}


def test_three_ways_to_give_a_first_state_lead_to_the_same_final_state(shared: Path) -> None:
    tasks = {task.id.removeprefix("tau2/mock-"): task for task in MOCK.tasks(shared / "mock")}
    ways = [
        tasks[f"update_task_with_{way}"] for way in ("message_history", "initialization_data", "initialization_actions")
    ]
    assert len({task.metadata["digest"] for task in ways}) == 1
    for task in ways:
        world = world_of(task)
        (update,) = task.metadata["golden"]
        assert world.toolkit.call(update["name"], update["arguments"]).ok
        assert world.toolkit.digest() == task.metadata["digest"]


def test_all_golden_calls_of_tau2s_airline_go_through_on_the_airlines_database(shared: Path, shared_data: Path) -> None:
    tasks = list(AIRLINE.tasks(shared / "airline", database=shared_data / "tau_bench_airline"))
    assert len(tasks) == 50
    assert [task.id for task in tasks if task.metadata["faults"]] == []
    writing = {name for name, function in Airline({}).functions().items() if function.writes}
    for task in tasks:
        wrote = any(call["name"] in writing for call in task.metadata["golden"])
        assert (task.metadata["digest"] != AIRLINE_DIGEST) == wrote


def test_the_board_counts_tasks_and_refuses_unknown_users() -> None:
    board = TaskBoard({"tasks": {}, "users": {"u": {"user_id": "u", "name": "U", "tasks": []}}})
    assert board.call("create_task", {"user_id": "u", "title": "x"}).content["task_id"] == "task_1"
    assert board.call("create_task", {"user_id": "v", "title": "x"}).error == "User v not found"
    assert not board.call("update_task_status", {"task_id": "task_1", "status": "late"}).ok
    assert board.call("get_users", {}).content[0]["tasks"] == ["task_1"]


# -- any domain --------------------------------------------------------------------------------------------------------


class Till(Toolkit):
    """Money in a till, and in a customer's purse."""

    @reads
    def count(self) -> float:
        """Count the money."""
        amount: float = self.db["till"]["amount"]
        return amount

    @writes(by="user")
    def pay(self, amount: float) -> str:
        """Pay something.

        Args:
            amount: in $
        """
        self.db["purse"]["amount"] -= amount
        return "paid"

    @reads(ends=True)
    def close(self) -> str:
        """Close the till."""
        return "closed"

    @reads(by="nobody")
    def assert_amount(self, expected: float) -> bool:
        """Whether the till has so much."""
        return bool(self.db["till"]["amount"] == expected)

    def synchronise(self) -> None:
        """What left the purse is in the till."""
        self.db["till"]["amount"] = 10 - self.db["purse"]["amount"]


def folder_of(tmp_path: Path, **criteria: Any) -> Path:
    rows = [{"id": "one", "user_scenario": {"instructions": "Pay 4 $."}, "evaluation_criteria": criteria}]
    (tmp_path / "db.json").write_text(json.dumps({"till": {"amount": 0}, "purse": {"amount": 10}}))
    (tmp_path / "tasks.json").write_text(json.dumps(rows))
    return tmp_path


TILL = Domain("own/till", Till)
PAY = {"name": "pay", "arguments": {"amount": 4}, "requestor": "user"}
FOUR = {"env_type": "assistant", "func_name": "assert_amount", "arguments": {"expected": 6}, "assert_value": False}


def test_parts_of_a_state_are_brought_in_line_within_the_call(tmp_path: Path) -> None:
    till = Till({"till": {"amount": 0}, "purse": {"amount": 10}})
    outcome = till.call("pay", {"amount": 4})
    assert {("till", "amount"), ("purse", "amount")} == outcome.written
    assert till.call("count", {}).content == 4
    assert till.call("close", {}).ok
    assert "after close" in till.call("count", {}).error
    assert till.ask("assert_amount", {"expected": 4}).content is True
    assert "writes" in till.ask("pay", {"amount": 1}).error


@pytest.mark.parametrize(
    ("criteria", "reason"),
    [
        ({}, "nothing to be graded by"),
        (
            {
                "actions": [PAY],
                "env_assertions": [{**FOUR, "arguments": {"expected": 4}}],
                "reward_basis": ["ENV_ASSERTION"],
            },
            "do not lead where it asserts",
        ),
    ],
)
def test_a_task_that_cannot_be_decided_is_named_with_the_reason(
    tmp_path: Path, criteria: dict[str, Any], reason: str
) -> None:
    folder = folder_of(tmp_path, **criteria)
    assert list(TILL.tasks(folder)) == []
    (found,) = TILL.left_out(folder)
    assert (found.id, reason in found.reason) == ("one", True)


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"actions": [{"name": "steal", "arguments": {}}]}, "golden call of 'steal'"),
        ({"env_assertions": [{**FOUR, "func_name": "assert_all"}], "reward_basis": ["ENV_ASSERTION"]}, "'assert_all'"),
        ({"env_assertions": [{"func": "x"}], "reward_basis": ["ENV_ASSERTION"]}, "form of tau2-bench"),
    ],
)
def test_a_wrong_row_is_named_with_its_file_and_task(tmp_path: Path, criteria: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=rf"tasks\.json: task 'one'.*{message}"):
        list(TILL.tasks(folder_of(tmp_path, **criteria)))


async def test_what_has_to_be_said_counts_only_where_the_reward_rests_on_it(tmp_path: Path) -> None:
    for basis, required in ((["DB"], []), (["DB", "COMMUNICATE"], ["4 dollars"])):
        folder = folder_of(tmp_path, actions=[PAY], communicate_info=["4 dollars"], reward_basis=basis)
        (task,) = TILL.tasks(folder)
        assert task.metadata["required"] == required


async def test_the_reason_names_the_assertion_that_does_not_hold(tmp_path: Path) -> None:
    basis = {"reward_basis": ["ENV_ASSERTION", "ACTION"]}
    folder = folder_of(tmp_path, actions=[PAY], env_assertions=[{**FOUR, "arguments": {"expected": 0}}], **basis)
    (task,) = TILL.tasks(folder)
    world = ToolkitWorld(TILL.toolkit_of(task).fresh(), task.metadata["assertions"], both_sides=True)
    grade = await FinalState().grade(task, Submission("", state=world.state()), BENCH)
    assert (grade.verdict, grade.marks) == ("wrong", (False, False))
    assert "assert_amount(expected=0) gives True, expected False" in grade.reason
    assert "pay(amount=4) was not made" in grade.reason
    await call(world, "pay", {"amount": 4})
    assert (await FinalState().grade(task, Submission("", state=world.state()), BENCH)).verdict == "right"
    other = ToolkitWorld(TILL.toolkit_of(task).fresh(), task.metadata["assertions"], both_sides=True)
    await call(other, "pay", {"amount": 5})
    again = await FinalState().grade(task, Submission("", state=other.state()), BENCH)
    assert again.marks == (True, False)
    plain = await FinalState().grade(task, Submission("", state={"till": {}}), BENCH)
    assert plain.verdict == "unparsable"
