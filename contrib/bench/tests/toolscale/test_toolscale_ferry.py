"""The shipped domain: its golden calls pass, every perturbation fails the criterion that it is about."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, run_call
from concertino_bench import DataError, Submission, Task, Verdict
from concertino_bench.toolkits import digest, replay, verify
from concertino_bench.toolkits.criteria import Fact
from concertino_bench.toolkits.replaying import GoldenCall, Operated, ReplayedCalls
from concertino_bench.toolscale import ToolscaleGrader, task_sets
from concertino_bench.toolscale.domains import ferry_company, ferry_tasks
from concertino_bench.toolscale.ferry.data import database, task_rows
from concertino_bench.toolscale.filters import without_action
from concertino_bench.toolscale.rows import TaskRow

KIT = ferry_company()
TASKS = task_rows()
DONE: dict[str, ReplayedCalls] = {task.id: replay(KIT, task.golden) for task in TASKS}
BENCH: Any = None  # this grader uses nothing of the pool


def answer_of(required: Sequence[Fact]) -> str:
    """A text that says every fact: what a golden trajectory would say."""
    return "; ".join(fact if isinstance(fact, str) else fact[0] for fact in required)


def judge(task: TaskRow, calls: list[GoldenCall], text: str | None = None) -> tuple[str, ...]:
    """Names of the criteria that fail."""
    golden, found = DONE[task.id], replay(KIT, calls)
    said = answer_of(task.required) if text is None else text
    return verify(
        golden.digest, golden.operated, task.required, found_digest=found.digest, found=found.operated, text=said
    ).failed


def test_there_are_twenty_tools_and_fifty_five_tasks_of_four_kinds() -> None:
    assert len(KIT.functions()) == 20
    assert Counter(task.axis for task in TASKS) == {"act": 24, "look": 12, "refuse": 11, "recover": 8}
    assert len({task.id for task in TASKS}) == len({task.request for task in TASKS}) == 55
    assert {task.level for task in TASKS} == {1, 2, 3, 4}


def test_the_database_is_the_same_each_time_and_its_prices_are_those_that_the_policy_gives() -> None:
    assert digest(database()) == digest(database()) == KIT.database.digest()
    data = database()
    for key, booking in data["bookings"].items():
        sailing = data["sailings"][booking["sailing_id"]]
        fares = booking["adults"] * sailing["fare_adult"] + booking["children"] * sailing["fare_adult"] / 2
        extras = booking["metres"] * sailing["fare_metre"] + 60 * booking["cabin"] + 10 * booking["pets"]
        assert booking["price"] == fares + extras, key
        assert key in data["customers"][booking["customer_id"]]["bookings"]


def test_every_golden_replay_is_without_fault_and_passes_all_three_criteria() -> None:
    assert [task.id for task in TASKS if DONE[task.id].faults] == []
    assert [task.id for task in TASKS if judge(task, [*task.golden]) != ()] == []


def test_a_task_changes_the_state_exactly_if_it_is_one_to_act() -> None:
    assert [t.id for t in TASKS if DONE[t.id].changed != (t.axis in ("act", "recover"))] == []


def test_every_tool_that_writes_is_used_by_a_golden_call() -> None:
    used = {call.name for task in TASKS for call in task.golden if not call.fails}
    assert {name for name, function in KIT.functions().items() if function.writes} <= used


def test_calls_that_fail_on_purpose_do_fail() -> None:
    failing = [step for task in TASKS for step in DONE[task.id].steps if step.call.fails]
    assert len(failing) == 11
    assert not any(step.outcome.ok for step in failing)


def test_no_task_is_solved_without_any_action_and_any_word() -> None:
    assert [row.id for row in TASKS if without_action(row, DONE[row.id])] == []


def test_a_dropped_write_fails_execution_and_a_dropped_look_up_fails_completeness() -> None:
    counts: Counter[str] = Counter()
    for task in TASKS:
        for place, call in enumerate(task.golden):
            failed = judge(task, [*task.golden[:place], *task.golden[place + 1 :]])
            outcome = DONE[task.id].steps[place].outcome
            if call.fails:
                assert failed == (), task.id  # what is refused changes nothing, so it may be left out
                counts["refused"] += 1
            elif KIT.functions()[call.name].writes:
                assert "execution" in failed, (task.id, call)
                assert "fidelity" not in failed
                counts["write"] += 1
            elif not outcome.read:
                assert failed == ()  # a search looks no record up by its key
                counts["search"] += 1
            else:
                others = Operated.by(s.outcome for n, s in enumerate(DONE[task.id].steps) if n != place)
                unique = outcome.read - others.read - others.written
                assert failed == (("completeness",) if unique else ()), (task.id, call)
                counts["look-up" if unique else "look-up again"] += 1
    assert counts == {"write": 46, "look-up": 36, "look-up again": 1, "refused": 11, "search": 1}


def test_a_wrong_argument_fails_execution_or_completeness() -> None:
    count, passed = 0, []
    for task in TASKS:
        for place, call in enumerate(task.golden):
            if call.fails or not DONE[task.id].steps[place].outcome.read | DONE[task.id].steps[place].outcome.written:
                continue
            for name, value in call.arguments.items():
                wrong = _other(name, value)
                if wrong is None:
                    continue
                calls = [*task.golden]
                calls[place] = GoldenCall(call.name, {**call.arguments, name: wrong})
                count += 1
                if judge(task, calls) == ():
                    passed.append((task.id, call.name, name))
    assert count == 138
    # A quote changes nothing and looks the same sailing up, whoever travels: its price is told, which is fidelity.
    assert {name for _, name, _ in passed} == {"quote"}
    assert len(passed) == 8


def _other(name: str, value: Any) -> Any:
    """Another value of an argument, None where another one means the same to the database."""
    if name in ("pay_by", "summary", "word") or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value + 1
    others = {
        "C": ("C06", "C04"),
        "B": ("B014", "B002"),
        "S": ("S304", "S108"),
        "V": ("V-ALPHA", "V-DELTA"),
        "L": ("L05", "L03"),
    }
    return next((other for other in others.get(str(value)[:1], ()) if other != value), f"x{value}")


EXTRA = GoldenCall("send_goodwill", {"customer_id": "C10", "amount": 1})


def test_an_extra_write_fails_execution_alone_and_an_extra_look_up_nothing() -> None:
    for task in TASKS:
        ends = any(call.name == "hand_over" for call in task.golden)
        before, after = [EXTRA, *task.golden], [*task.golden, EXTRA]
        assert judge(task, before) == ("execution",), task.id
        assert judge(task, after) == (() if ends else ("execution",)), task.id
        assert judge(task, [GoldenCall("get_sailing", {"sailing_id": "S402"}), *task.golden]) == ()


def test_a_fact_that_is_not_told_fails_fidelity_alone() -> None:
    count = 0
    for task in TASKS:
        for place in range(len(task.required)):
            others = answer_of([*task.required[:place], *task.required[place + 1 :]])
            fact = task.required[place]
            if verify_mentions(others, fact):
                continue  # another fact says it too
            assert judge(task, [*task.golden], others) == ("fidelity",), task.id
            count += 1
    assert count == 85


def verify_mentions(text: str, fact: Any) -> bool:
    from concertino_bench.toolkits.criteria import mentions

    return mentions(text, fact)


# -- tasks, worlds and the grader --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return {task.id.removeprefix("toolscale/ferry-"): task for task in ferry_tasks()}


def test_tasks_are_plain_data_with_policy_golden_calls_and_digest(tasks: dict[str, Task]) -> None:
    task = tasks["act-14"]
    assert (task.kind, task.axis, task.level) == ("toolscale", "act", 2)
    assert task.question.startswith("You serve the customers")
    assert "You cancelled" not in task.question.partition("The customer writes:")[0]
    assert task.metadata["digest"] == DONE["act-14"].digest
    assert task.metadata["operations"]["written"] == [["bookings", "B005"], ["customers", "C03"], ["sailings", "S202"]]
    assert len(list(ferry_tasks(kind="refuse"))) == 11
    with pytest.raises(DataError, match="look, act, refuse, recover"):
        next(ferry_tasks(kind="none"))


def grade(task: Task, submission: Submission) -> Any:
    return asyncio.run(ToolscaleGrader().grade(task, submission, BENCH))


def test_a_run_in_the_world_of_a_task_is_graded_right(tasks: dict[str, Task]) -> None:
    (offered,) = [each for each in task_sets() if each.name == "toolscale/ferry"]
    assert offered.world is not None
    task = tasks["recover-1"]
    world = offered.world(task)
    turns = [[(call["name"], call["arguments"])] for call in task.metadata["golden"]]
    with ScriptedModel(*turns, "<answer>You have S101 for 160.</answer>") as model:
        run = asyncio.run(ct.Orchestrator(model).run(task.question, pool=ct.Pool.of(*world.members())))
    calls = [
        {"name": call.name, "arguments": call.arguments, "status": "OK"}
        for round_ in run.rounds
        for call in round_.plan.calls
    ]
    graded = grade(task, Submission(run.answer or "", calls, world.state(), run.stop))
    assert (graded.verdict, graded.share) == (Verdict.RIGHT, 1.0)
    assert graded.values == {"execution": 1.0, "fidelity": 1.0, "completeness": 1.0}


def test_the_grade_says_which_parts_failed_and_why(tasks: dict[str, Task]) -> None:
    task = tasks["act-2"]
    right = {"name": "ferry/cancel_booking", "arguments": {"booking_id": "B001"}}
    silent = grade(task, Submission("It is done.", [right]))
    assert (silent.verdict, silent.marks) == (Verdict.WRONG, (True, False, True))
    assert "not mentioned: '155'" in silent.reason
    idle = grade(task, Submission("155 come back to you.", [], database()))
    assert idle.marks == (False, True, False)
    assert "the trajectory changed nothing" in idle.reason
    assert "bookings/B001 not written" in idle.reason


def test_a_state_counts_also_where_the_calls_were_made_by_an_agent_below(tasks: dict[str, Task]) -> None:
    kit = KIT.fresh()
    kit.call("cancel_booking", {"booking_id": "B001"})
    graded = grade(tasks["act-2"], Submission("155", [{"name": "my_agent", "arguments": {}}], kit.state()))
    assert graded.verdict is Verdict.RIGHT


def acted(task: Task, *calls: dict[str, Any]) -> Any:
    """The state of a task's world after calls of its tools, whoever made them."""
    (offered,) = [each for each in task_sets() if each.name == "toolscale/ferry"]
    world = offered.world(task)  # type: ignore[misc]
    tools = {tool.name: tool for tool in world.members()}
    for call in calls:
        asyncio.run(run_call(tools[call["name"]], call["arguments"]))
    return world.state()


def test_calls_that_were_refused_or_never_run_do_not_count(tasks: dict[str, Task]) -> None:
    looks = [task for task in tasks.values() if task.axis == "look" and task.metadata["operations"]["read"]]
    assert looks
    for task in looks:
        said, golden = answer_of(task.metadata["required"]), task.metadata["golden"]
        refused = [{**call, "status": "EXEC_ERR"} for call in golden]
        for state in (acted(task), None):
            idle = grade(task, Submission(said, refused, state))
            assert (idle.verdict, idle.marks) == (Verdict.WRONG, (True, True, False)), task.id
        assert grade(task, Submission(said, golden, acted(task, *golden))).verdict is Verdict.RIGHT


def test_look_ups_of_an_agent_below_count_as_in_the_filter(tasks: dict[str, Task]) -> None:
    task = next(task for task in tasks.values() if task.axis == "look" and task.metadata["operations"]["read"])
    below = [{"name": "my_agent", "arguments": {}, "status": "OK"}]
    state = acted(task, *task.metadata["golden"])
    assert grade(task, Submission(answer_of(task.metadata["required"]), below, state)).verdict is Verdict.RIGHT


def test_nothing_handed_in_is_unparsable_and_strange_calls_never_raise(tasks: dict[str, Task]) -> None:
    assert grade(tasks["act-2"], Submission("")).verdict is Verdict.UNPARSABLE
    odd: list[Any] = [{}, {"name": None, "arguments": "x"}, {"name": "book", "arguments": {"customer_id": 5}}]
    for state in (None, {}, {"bookings": []}, {"x": {1, 2}}):
        assert grade(tasks["act-2"], Submission("155", odd, state)).verdict is Verdict.WRONG


def test_a_task_without_a_golden_state_is_refused() -> None:
    with pytest.raises(ValueError, match="digest"):
        grade(Task("t", "?", (), "toolscale"), Submission("x"))
    with pytest.raises(ValueError, match="t: metadata lacks digest"):
        ToolscaleGrader().check(Task("t", "?", (), "toolscale"))
    meta = {"digest": "", "operations": {}, "required": [], "domain": "none"}
    with pytest.raises(DataError, match="no domain 'none'"):
        grade(Task("t", "?", (), "toolscale", metadata=meta), Submission("x"))


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("book", {"customer_id": "C01", "sailing_id": "S202", "adults": 1, "pay_by": "card"}, "sailing is cancelled"),
        ("book", {"customer_id": "C01", "sailing_id": "S101", "adults": 0, "pay_by": "card"}, "one adult"),
        ("book", {"customer_id": "C01", "sailing_id": "S101", "adults": -1, "pay_by": "card"}, "negative"),
        ("book", {"customer_id": "C01", "sailing_id": "S102", "adults": 1, "metres": 4, "pay_by": "card"}, "0 metres"),
        ("book", {"customer_id": "C01", "sailing_id": "S205", "adults": 1, "cabin": True, "pay_by": "card"}, "cabin"),
        ("book", {"customer_id": "C01", "sailing_id": "S101", "adults": 1, "pay_by": "credit"}, "40 is due"),
        ("change_sailing", {"booking_id": "B001", "sailing_id": "S104", "pay_by": "card"}, "already"),
        ("change_sailing", {"booking_id": "B001", "sailing_id": "S204", "pay_by": "card"}, "another route"),
        ("cancel_booking", {"booking_id": "B015"}, "is cancelled"),
        ("check_in", {"booking_id": "B009"}, "S302 is cancelled"),
        ("add_cabin", {"booking_id": "B003", "pay_by": "card"}, "has a cabin already"),
        ("redeem_points", {"customer_id": "C05", "points": 150}, "multiples"),
        ("claim_item", {"item_id": "L09", "customer_id": "C05"}, "lost item 'L09' not found"),
    ],
)
def test_the_ferry_refuses_what_cannot_be_done(name: str, arguments: dict[str, Any], error: str) -> None:
    kit = KIT.fresh()
    outcome = kit.call(name, arguments)
    assert error in outcome.error
    assert not outcome.broken
    assert kit.digest() == KIT.database.digest()


def test_a_change_at_short_notice_costs_the_fee_and_a_cancelled_sailing_is_changed_for_nothing() -> None:
    kit = KIT.fresh()
    late = kit.call("change_sailing", {"booking_id": "B013", "sailing_id": "S203", "pay_by": "card"})
    free = kit.call("change_sailing", {"booking_id": "B005", "sailing_id": "S204", "pay_by": "card"})
    assert (late.content["charged"], free.content["charged"]) == (15, 0)
