"""A person decides about calls: waiting, suspending, resuming, and what it must never cost."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import concertino as ct
import pytest
from concertino.testing import ScriptedModel

FINAL = '<reasoning>done</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
ANSWER = "<answer>paid</answer>"


def calls(*made: tuple[str, dict[str, Any]]) -> str:
    texts = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in made]
    blocks = [f"<tool_call>{text}</tool_call>" for text in texts]
    return "<reasoning>so</reasoning>\n" + "\n".join(blocks)


class Bank:
    """Counts what was paid."""

    def __init__(self) -> None:
        self.paid: Counter[float] = Counter()
        self.looked = 0

    def pool(self, **options: Any) -> ct.Pool:
        @ct.tool(approval=True, timeout=0.2, **options)
        async def pay(amount: float) -> str:
            """Pay an amount."""
            self.paid[amount] += 1
            return f"paid {amount:g}"

        @ct.tool
        async def look() -> str:
            """Look at the account."""
            self.looked += 1
            return "plenty"

        @ct.agent
        async def buy(ctx: ct.Context[Any], amount: float) -> str:
            """Buy something."""
            seen = await ctx.call("look", {})
            done = await ctx.call("pay", {"amount": amount})
            return f"{seen.content}: {done.content if done.ok else done.error.message}"

        return ct.Pool.of(pay, look, buy)


def script(*turns: str) -> ScriptedModel:
    return ScriptedModel(*turns, FINAL, ANSWER, strict=False)


# -- with a handler ----------------------------------------------------------------------------------------------------


async def test_a_call_waits_for_its_handler_and_runs_after_the_yes() -> None:
    bank = Bank()
    asked: list[ct.ApprovalRequest] = []

    async def approve(request: ct.ApprovalRequest) -> bool:
        asked.append(request)
        assert not bank.paid
        return True

    leader = ct.Orchestrator(script(calls(("pay", {"amount": 5}))), approve=approve)
    run = await leader.run("pay 5", pool=bank.pool())
    assert run.answer == "paid"
    assert bank.paid == {5: 1}
    (request,) = asked
    assert (request.call_id, request.name, request.arguments) == ("1.1", "pay", {"amount": 5})
    assert (request.description, request.question, request.run_id) == ("Pay an amount.", "pay 5", run.id)
    kinds = [event.to_json()["t"] for event in run.events]
    assert kinds.index("approval") < kinds.index("decision") < kinds.index("intent")


@pytest.mark.parametrize(
    ("decision", "code", "said"),
    [
        (ct.Deny("too much"), "denied", "refused: too much"),
        (False, "denied", "a person said no"),
        (ct.Approve({"amount": "lots"}), "invalid_arguments", "amount"),
        ("perhaps", "denied", "expected Approve(), Deny(reason), True or False"),
    ],
)
async def test_a_no_is_an_observation_that_the_model_reads(decision: Any, code: str, said: str) -> None:
    bank = Bank()
    leader = ct.Orchestrator(script(calls(("pay", {"amount": 5}))), approve=lambda request: decision)
    run = await leader.run("q", pool=bank.pool())
    error = run.observations[0].error
    assert error is not None
    assert error.code == code
    assert said in error.message
    assert not bank.paid


async def test_a_person_may_edit_the_arguments() -> None:
    bank = Bank()
    leader = ct.Orchestrator(script(calls(("pay", {"amount": 5}))), approve=lambda r: ct.Approve({"amount": 3}))
    run = await leader.run("q", pool=bank.pool())
    assert bank.paid == {3: 1}
    assert run.observations[0].content == "paid 3"


async def test_a_rule_over_the_arguments_decides_who_is_asked() -> None:
    asked = []

    @ct.tool(approval=lambda arguments: arguments["amount"] > 10)
    def pay(amount: float) -> str:
        """Pay."""
        return "ok"

    def approve(request: ct.ApprovalRequest) -> bool:
        asked.append(request.arguments["amount"])
        return True

    leader = ct.Orchestrator(script(calls(("pay", {"amount": 5}), ("pay", {"amount": 50}))), approve=approve)
    await leader.run("q", pool=ct.Pool.of(pay))
    assert asked == [50]


async def test_waiting_costs_neither_the_tools_time_nor_the_budgets_and_siblings_run_on() -> None:
    bank = Bank()
    done: list[str] = []

    async def approve(request: ct.ApprovalRequest) -> bool:
        await asyncio.sleep(0.5)  # longer than the tool's 0.2 s and the budget's 0.45
        done.append(f"looked {bank.looked}")
        return True

    turn = calls(("pay", {"amount": 1}), ("look", {}), ("pay", {"amount": 2}))
    leader = ct.Orchestrator(script(turn), approve=approve)
    run = await leader.run("q", pool=bank.pool(), budget=ct.Budget(seconds=0.45))
    assert [seen.status for seen in run.observations] == [ct.Status.OK] * 3, run.observations
    assert run.answer == "paid", run.detail
    assert done == ["looked 1", "looked 1"]
    decisions = [event for event in run.events if isinstance(event, ct.events.Decided)]
    assert 0.45 < sum(decision.waited for decision in decisions) < 0.9, "time that two waited together counts once"


async def test_the_time_of_an_agent_stands_still_while_a_call_of_it_waits() -> None:
    bank = Bank()

    async def approve(request: ct.ApprovalRequest) -> bool:
        await asyncio.sleep(0.4)
        return True

    leader = ct.Orchestrator(script(calls(("buy", {"amount": 4}))), approve=approve)
    run = await leader.run("q", pool=bank.pool().adjust("buy", timeout=0.3))
    assert run.observations[0].content == "plenty: paid 4"


async def test_a_cancelled_run_stops_waiting() -> None:
    bank = Bank()
    waiting = asyncio.Event()

    async def approve(request: ct.ApprovalRequest) -> bool:
        waiting.set()
        await asyncio.sleep(60)
        return True

    for name in ("pay", "buy"):
        waiting.clear()
        leader = ct.Orchestrator(script(calls((name, {"amount": 4}))), approve=approve)
        handle = leader.start("q", pool=bank.pool())
        await waiting.wait()
        run = await asyncio.wait_for(handle.cancel(), 5)
        assert run.stop == "cancelled"
    assert not bank.paid
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if "_ask_a_person" in repr(task)]


async def test_a_decision_that_cannot_be_recorded_lets_nothing_run_and_nobody_wait(tmp_path: Path) -> None:
    from concertino.traces import JournalSink

    bank = Bank()

    class Full(JournalSink):
        def append(self, event: Any) -> None:
            if isinstance(event, ct.events.Decided):
                raise ct.TraceError("the disk is full")
            super().append(event)

    async with ct.Executor() as executor:
        sink = Full.create(
            tmp_path / "r.trace.jsonl", {"t": "header", "v": 1, "format": "concertino-trace", "run": "r"}
        )
        scope = executor.open(bank.pool(), sink=sink, approver=lambda request: True)
        plan = ct.Plan([ct.Call("pay", {"amount": 1})])
        (seen,) = await asyncio.wait_for(executor.run_plan(plan, scope), 5)
        await executor.release(scope)
        sink.close()
    assert seen.error is not None
    assert "its decision could not be recorded: the disk is full" in seen.error.message
    assert not bank.paid


# -- suspended ---------------------------------------------------------------------------------------------------------


async def test_a_suspended_run_without_a_trace_says_that_it_cannot_be_resumed() -> None:
    run = await ct.Orchestrator(script(calls(("pay", {"amount": 5})))).run("q", pool=Bank().pool())
    assert run.detail == "waits for approval of 1.1 pay; the run has no trace, so it cannot be resumed"


async def test_decisions_that_are_no_dict_are_refused_with_one(tmp_path: Path) -> None:
    bank, path, wrong = Bank(), tmp_path / "r.trace.jsonl", cast("Any", ["1.1"])
    leader = ct.Orchestrator(script(calls(("pay", {"amount": 5}))))
    await leader.run("q", pool=bank.pool(), trace=path)
    with pytest.raises(ct.UsageError, match=r"decisions=\['1.1'\]: expected a dict .* such as {'1.2': Approve\(\)}"):
        await leader.resume(path, pool=bank.pool(), decisions=wrong)


@pytest.mark.parametrize("name", ["pay", "buy"])
async def test_without_a_handler_the_run_is_suspended_and_resumed_with_the_decision(name: str, tmp_path: Path) -> None:
    bank, path = Bank(), tmp_path / "r.trace.jsonl"
    model = script(calls((name, {"amount": 5}), ("look", {})))
    run = await ct.Orchestrator(model).run("q", pool=bank.pool(), trace=path)
    call_id = "1.1" if name == "pay" else "1.1/2.1"
    assert run.stop == "suspended"
    assert run.detail == f"waits for approval of {call_id} pay"
    assert [(request.call_id, request.arguments) for request in run.pending] == [(call_id, {"amount": 5})]
    assert list(ct.Trace.load(path).pending()) == [call_id]
    looked = bank.looked
    again = script("<answer>never asked</answer>")
    waiting = await ct.Orchestrator(again).resume(path, pool=bank.pool())
    assert waiting.stop == "suspended", "without a decision it waits on"
    assert len(again.requests) == 0
    model = ScriptedModel(FINAL, ANSWER)
    done = await ct.Orchestrator(model).resume(path, pool=bank.pool(), decisions={call_id: ct.Approve()})
    assert done.answer == "paid"
    assert bank.paid == {5: 1}
    assert bank.looked == looked, "what was done is not done again"
    assert ct.Trace.load(path).pending() == {}


async def test_a_decision_about_a_call_that_does_not_wait_is_refused(tmp_path: Path) -> None:
    bank, path = Bank(), tmp_path / "r.trace.jsonl"
    await ct.Orchestrator(script(calls(("pay", {"amount": 5})))).run("q", pool=bank.pool(), trace=path)
    with pytest.raises(ct.UsageError, match=r"no call '9.9' of run .*; those that wait: 1.1 \(pay\)"):
        await ct.Orchestrator(script()).resume(path, pool=bank.pool(), decisions={"9.9": True})
    wrong: Any = {"1.1": "yes"}
    with pytest.raises(ct.UsageError, match="expected Approve"):
        await ct.Orchestrator(script()).resume(path, pool=bank.pool(), decisions=wrong)
    await ct.Orchestrator(script()).resume(path, pool=bank.pool(), decisions={"1.1": True})
    with pytest.raises(ct.UsageError, match=r"those that wait: none, since the run has ended \(answered\)"):
        await ct.Orchestrator(script()).resume(path, pool=bank.pool(), decisions={"1.1": True})


async def test_what_waits_for_the_call_runs_after_it_and_nothing_of_it_is_kept_before(tmp_path: Path) -> None:
    from concertino.executor import Executor

    bank = Bank()
    plan = ct.Plan([ct.Call("pay", {"amount": 2}, "a"), ct.Call("pay", {"amount": 3}, "b", after=("a",))])
    async with Executor() as executor:
        scope = executor.open(bank.pool())
        seen = await executor.run_plan(plan, scope)
        assert [observation.error.code for observation in seen if observation.error] == ["approval_pending"] * 2
        assert list(scope.pending) == ["a"]
        assert not [event for event in scope.events if isinstance(event, ct.events.CallEnded)]
        await executor.release(scope)


@pytest.mark.parametrize("seed", range(200))
async def test_random_plans_killed_anywhere_end_as_if_nothing_had_happened(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    names: list[Callable[[], tuple[str, dict[str, Any]]]] = [
        lambda: ("pay", {"amount": float(next(amounts))}),
        lambda: ("buy", {"amount": float(next(amounts))}),
        lambda: ("look", {}),
    ]
    amounts = iter(range(1, 100))
    rounds = [calls(*(rng.choice(names)() for _ in range(rng.randrange(1, 4)))) for _ in range(rng.randrange(1, 4))]
    turns = [*rounds, FINAL, ANSWER]

    def answering(request: ct.ChatRequest) -> str:
        # By the length of the conversation, so that a resumed run is told the same.
        return turns[sum(message.role == "assistant" for message in request.messages)]

    def model() -> ScriptedModel:
        return ScriptedModel(answering, strict=False)

    plain = Bank()
    undisturbed = await ct.Orchestrator(model(), approve=lambda request: True).run("q", pool=plain.pool())
    bank, path = Bank(), tmp_path / "r.trace.jsonl"
    run = await ct.Orchestrator(model()).run("q", pool=bank.pool(), trace=path)
    for _ in range(40):
        if run.stop != "suspended":
            break
        if rng.random() < 0.5:
            # As a kill leaves the file: whole lines up to some point, at least up to what waits for the person.
            lines = path.read_bytes().splitlines(keepends=True)
            least = 1 + max(n for n, line in enumerate(lines) if b'"t":"approval"' in line or b'"t":"result"' in line)
            path.write_bytes(b"".join(lines[: rng.randrange(least, len(lines) + 1)]))
        waiting = list(ct.Trace.load(path).pending())
        chosen = {call_id: True for call_id in waiting if rng.random() < 0.7}
        run = await ct.Orchestrator(model()).resume(path, pool=bank.pool(), decisions=chosen)
    assert run.answer == undisturbed.answer
    assert bank.paid == plain.paid
    assert set(bank.paid.values()) <= {1}

    def shape(found: ct.Run) -> list[Any]:
        return [(seen.call_id, seen.status, seen.content) for seen in found.observations]

    assert sorted(shape(run)) == sorted(shape(undisturbed))
    assert run.usage.calls == undisturbed.usage.calls


def test_a_wrong_approval_option_is_refused() -> None:
    with pytest.raises(ct.SpecError, match="approval='yes'; expected True, False or a function"):

        @ct.tool(approval="yes")
        def pay() -> str:
            """Pay."""
            return ""


def test_approval_is_part_of_what_a_pool_is() -> None:
    pool = Bank().pool()
    assert pool.adjust("look", approval=True) != pool
    assert pool["pay"].to_json()["approval"] is True
    assert "approval" not in pool["look"].to_json()
