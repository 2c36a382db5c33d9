"""Guards: what they see, what they decide, what their failures count as, and what a resumed run and a trace know."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel
from pydantic import BaseModel

FINAL = '<reasoning>done</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
ANSWER = "<answer>paid</answer>"


def calls(*made: tuple[str, dict[str, Any]]) -> str:
    texts = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in made]
    return "<reasoning>so</reasoning>\n" + "\n".join(f"<tool_call>{text}</tool_call>" for text in texts)


class Shop:
    """Counts what was done."""

    def __init__(self) -> None:
        self.paid: Counter[float] = Counter()

    @property
    def pool(self) -> ct.Pool:
        @ct.tool(timeout=0.3)
        async def pay(amount: float) -> str:
            """Pay an amount."""
            self.paid[amount] += 1
            return f"paid {amount:g}, card 4000-1234"

        @ct.tool
        async def fail() -> str:
            """Fail."""
            raise ValueError("card 4000-1234 is blocked")

        @ct.tool
        async def slow() -> str:
            """Take long."""
            await asyncio.sleep(30)
            return "late"

        @ct.agent
        async def buy(ctx: ct.Context[Any], amount: float) -> str:
            """Buy something."""
            done = await ctx.call("pay", {"amount": amount})
            return str(done.content if done.error is None else done.error.message)

        return ct.Pool.of(pay, fail, slow, buy)


def leader(*turns: str, guards: Sequence[ct.Guard], answer: str = ANSWER, **options: Any) -> ct.Orchestrator:
    return ct.Orchestrator(ScriptedModel(*turns, FINAL, answer, strict=False), guards=guards, **options)


@ct.guard("question")
def passes(question: str) -> None:
    """Lets everything pass."""


# -- the question ------------------------------------------------------------------------------------------------------


async def test_a_denied_question_ends_the_run_before_anything_is_asked() -> None:
    @ct.guard("question")
    async def on_topic(question: str) -> ct.Deny | None:
        return None if "bank" in question else ct.Deny("only questions about the bank")

    shop = Shop()
    run = await leader(calls(("pay", {"amount": 5})), guards=[on_topic]).run("a poem, please", pool=shop.pool)
    assert (run.answer, run.stop, run.detail) == (None, "guard", "only questions about the bank")
    assert not shop.paid
    assert run.usage.tokens == 0
    assert run.question == "a poem, please"


async def test_a_replaced_question_is_the_only_one_that_model_and_trace_know(tmp_path: Path) -> None:
    @ct.guard("question")
    def without_numbers(question: str) -> ct.Replace:
        return ct.Replace(question.replace("4000-1234", "[card]"))

    model = ScriptedModel(FINAL, ANSWER, strict=False)
    run = await ct.Orchestrator(model, guards=[without_numbers]).run(
        "pay with 4000-1234", pool=Shop().pool, trace=tmp_path / "t.jsonl"
    )
    assert run.question == "pay with [card]"
    assert "4000-1234" not in (tmp_path / "t.jsonl").read_text()
    assert all("4000-1234" not in str(message) for request in model.requests for message in request.messages)
    kinds = [event.to_json()["t"] for event in run.events]
    assert kinds[:3] == ["run", "intent", "result"]
    assert ct.replay(ct.Trace.load(tmp_path / "t.jsonl")).answer == "paid"


async def test_guards_are_asked_in_order_and_each_sees_what_the_one_before_left() -> None:
    seen: list[str] = []

    def guard(name: str) -> ct.Guard:
        @ct.guard("question", name=name)
        def judge(question: str) -> ct.Replace:
            seen.append(question)
            return ct.Replace(question + name)

        return judge

    run = await leader(guards=[guard("a"), guard("b")]).run("q", pool=Shop().pool)
    assert seen == ["q", "qa"]
    assert run.question == "qab"


async def test_a_guard_beside_the_model_holds_calls_back_until_it_has_decided() -> None:
    order: list[str] = []

    @ct.guard("question", beside=True)
    async def slow_check(question: str) -> None:
        await asyncio.sleep(0.15)
        order.append("checked")

    @ct.tool
    async def act() -> str:
        """Act."""
        order.append("acted")
        return "ok"

    model = ScriptedModel(calls(("act", {})), FINAL, ANSWER, strict=False)
    started = time.perf_counter()
    task = asyncio.create_task(ct.Orchestrator(model, guards=[slow_check]).run("q", pool=ct.Pool.of(act)))
    await asyncio.sleep(0.1)
    assert len(model.requests) == 1  # the model was asked meanwhile
    run = await task
    assert time.perf_counter() - started >= 0.15
    assert order == ["checked", "acted"]
    assert run.answer == "paid"


async def test_a_guard_beside_the_model_ends_a_run_whose_request_is_under_way() -> None:
    class Slow(ScriptedModel):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            await asyncio.sleep(30)
            return await super().chat(request)

    @ct.guard("question", beside=True)
    async def no(question: str) -> ct.Deny:
        return ct.Deny("not here")

    started = time.perf_counter()
    run = await ct.Orchestrator(Slow(FINAL, ANSWER), guards=[no]).run("q", pool=Shop().pool)
    assert time.perf_counter() - started < 5
    assert (run.stop, run.detail) == ("guard", "not here")


# -- calls -------------------------------------------------------------------------------------------------------------


async def test_a_denied_call_is_an_observation_with_the_reason_and_is_not_made() -> None:
    @ct.guard("call", only="pay")
    async def small(call: ct.GuardedCall) -> ct.Deny | None:
        return ct.Deny("at most 10") if call.arguments["amount"] > 10 else None

    shop = Shop()
    turns = calls(("pay", {"amount": 5}), ("pay", {"amount": 500}))
    run = await leader(turns, guards=[small]).run("pay", pool=shop.pool)
    assert shop.paid == {5: 1}
    first, second = run.observations
    assert first.ok
    assert second.error is not None
    assert (second.error.code, second.error.message, second.attempts) == ("denied", "refused: at most 10", 0)


async def test_replaced_arguments_are_validated_and_used() -> None:
    def halving(value: Any) -> ct.Guard:
        @ct.guard("call")
        def change(call: ct.GuardedCall) -> ct.Replace:
            return ct.Replace({"amount": value})

        return change

    shop = Shop()
    run = await leader(calls(("pay", {"amount": 8})), guards=[halving(4)]).run("pay", pool=shop.pool)
    assert run.ok
    assert shop.paid == {4: 1}
    run = await leader(calls(("pay", {"amount": 8})), guards=[halving("much")]).run("pay", pool=shop.pool)
    assert shop.paid == {4: 1}
    assert run.observations[0].status is ct.Status.PARSE_ERR


async def test_calls_of_agents_are_guarded_too() -> None:
    seen: list[str] = []

    @ct.guard("call")
    def watch(call: ct.GuardedCall) -> ct.Deny | None:
        seen.append(f"{call.call_id} {call.name}")
        return ct.Deny("not by an agent") if "/" in call.call_id else None

    shop = Shop()
    run = await leader(calls(("buy", {"amount": 5})), guards=[watch]).run("buy", pool=shop.pool)
    assert seen == ["1.1 buy", "1.1/1.1 pay"]
    assert run.observations[0].content == "refused: not by an agent"
    assert not shop.paid


async def test_a_guard_comes_before_the_person_who_approves() -> None:
    asked: list[Any] = []

    @ct.tool(approval=True)
    async def pay(amount: float) -> str:
        """Pay."""
        return f"paid {amount:g}"

    @ct.guard("call")
    def cap(call: ct.GuardedCall) -> ct.Replace:
        return ct.Replace({"amount": min(call.arguments["amount"], 10)})

    def approve(request: ct.ApprovalRequest) -> bool:
        asked.append(request.arguments)
        return True

    run = await leader(calls(("pay", {"amount": 50})), guards=[cap], approve=approve).run("pay", pool=ct.Pool.of(pay))
    assert asked == [{"amount": 10}]
    assert run.observations[0].content == "paid 10"


async def test_a_guard_can_end_the_run_and_what_runs_is_cancelled() -> None:
    @ct.guard("call", only="pay")
    async def stop(call: ct.GuardedCall) -> ct.EndRun:
        await asyncio.sleep(0.05)
        return ct.EndRun("fraud")

    shop = Shop()
    started = time.perf_counter()
    run = await leader(calls(("slow", {}), ("pay", {"amount": 5})), guards=[stop]).run("pay", pool=shop.pool)
    assert time.perf_counter() - started < 5
    assert (run.answer, run.stop, run.detail) == (None, "guard", "fraud")
    assert not shop.paid
    assert ct.replay(run.trace).stop == "guard"


# -- results -----------------------------------------------------------------------------------------------------------


async def test_a_replaced_result_is_all_that_model_and_trace_see(tmp_path: Path) -> None:
    @ct.guard("result")
    async def masked(result: ct.GuardedResult) -> ct.Replace:
        assert result.arguments == ({"amount": 5} if result.name == "pay" else {})
        return ct.Replace(str(result.content).replace("4000-1234", "****"))

    model = ScriptedModel(calls(("pay", {"amount": 5}), ("fail", {})), FINAL, ANSWER, strict=False)
    run = await ct.Orchestrator(model, guards=[masked]).run("pay", pool=Shop().pool, trace=tmp_path / "t.jsonl")
    assert run.observations[0].content == "paid 5, card ****"
    assert run.observations[1].error is not None
    assert run.observations[1].error.message.endswith("card **** is blocked")
    assert "4000-1234" not in (tmp_path / "t.jsonl").read_text()


async def test_a_denied_result_is_a_failed_call_whose_content_is_gone() -> None:
    @ct.guard("result")
    def nothing(result: ct.GuardedResult) -> ct.Deny:
        return ct.Deny("holds a card number")

    run = await leader(calls(("pay", {"amount": 5})), guards=[nothing]).run("pay", pool=Shop().pool)
    (seen,) = run.observations
    assert seen.error is not None
    assert (seen.status, seen.content, seen.error.code) == (ct.Status.EXEC_ERR, None, "denied")
    assert seen.attempts == 1


async def test_the_time_of_a_result_guard_is_not_the_calls_own() -> None:
    @ct.guard("result")
    async def slowly(result: ct.GuardedResult) -> None:
        await asyncio.sleep(0.5)  # longer than the tool may take

    run = await leader(calls(("pay", {"amount": 5})), guards=[slowly]).run("pay", pool=Shop().pool)
    assert run.observations[0].ok


async def test_a_long_result_is_seen_whole_and_cut_afterwards() -> None:
    @ct.tool(max_chars=100)
    async def read() -> str:
        """Read a long text."""
        return "x" * 500 + "SECRET" + "y" * 500

    lengths: list[int] = []

    @ct.guard("result")
    def whole(result: ct.GuardedResult) -> ct.Replace:
        lengths.append(len(result.content))
        return ct.Replace(result.content.replace("SECRET", ""))

    run = await leader(calls(("read", {})), guards=[whole]).run("read", pool=ct.Pool.of(read))
    assert lengths == [1006]
    (seen,) = run.observations
    assert len(seen.content) <= 150
    assert seen.truncated > 800
    ended = [event for event in run.events if isinstance(event, ct.events.CallEnded) and event.observation is seen]
    assert ended[0].full == "x" * 500 + "y" * 500


# -- the answer --------------------------------------------------------------------------------------------------------


async def test_a_denied_answer_goes_back_with_the_reason() -> None:
    @ct.guard("answer")
    def polite(answer: str) -> ct.Deny | None:
        return None if answer.endswith("please") else ct.Deny("say please")

    model = ScriptedModel(FINAL, ANSWER, "paid, please", strict=False)
    run = await ct.Orchestrator(model, guards=[polite]).run("q", pool=Shop().pool)
    assert (run.answer, run.output, run.stop) == ("paid, please", "paid, please", "answered")
    assert "say please" in model.requests[-1].messages[-1].text
    assert ct.replay(run.trace).answer == "paid, please"


async def test_an_answer_that_is_denied_each_time_is_never_given() -> None:
    @ct.guard("answer")
    def never(answer: str) -> ct.Deny:
        return ct.Deny("no")

    run = await leader("x", guards=[never]).run("q", pool=Shop().pool)
    assert (run.answer, run.output, run.stop) == (None, None, "guard")
    assert "no" in run.detail


async def test_a_replaced_answer_must_still_be_of_its_type() -> None:
    class Sum(BaseModel):
        amount: float

    def to(text: str) -> ct.Guard:
        @ct.guard("answer")
        def change(answer: str) -> ct.Replace:
            return ct.Replace(text)

        return change

    answer = '<answer>{"amount": 5}</answer>'
    run = await leader(guards=[to('{"amount": 6}')], answer=answer, answer_type=Sum).run("q", pool=Shop().pool)
    assert run.output == Sum(amount=6)
    run = await leader(guards=[to('{"amount": "x"}')], answer=answer, answer_type=Sum).run("q", pool=Shop().pool)
    assert (run.output, run.answer, run.stop) == (None, None, "format")


async def test_no_piece_of_an_answer_is_streamed_before_its_guards_have_seen_it() -> None:
    @ct.guard("answer")
    def masked(answer: str) -> ct.Replace:
        return ct.Replace(answer.replace("paid", "done"))

    events = [event async for event in leader(guards=[masked]).stream("q", pool=Shop().pool)]
    pieces = [e.text for e in events if isinstance(e, ct.events.TextDelta) and e.kind == "answer"]
    assert pieces == ["done"]


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["question", "call", "result", "answer"])
@pytest.mark.parametrize("fault", ["raises", "hangs", "nonsense"])
async def test_a_guard_that_fails_lets_nothing_pass_and_its_status_is_in_the_trace(stage: Any, fault: str) -> None:
    @ct.guard(stage, timeout=0.1)
    async def broken(seen: Any) -> Any:
        if fault == "raises":
            raise RuntimeError("boom")
        if fault == "hangs":
            await asyncio.sleep(30)
        return "nonsense"

    shop = Shop()
    run = await leader(calls(("pay", {"amount": 5})), guards=[broken]).run("pay", pool=shop.pool)
    checks = [
        e.observation for e in run.events if isinstance(e, ct.events.CallEnded) and e.observation.name == "broken"
    ]
    assert checks
    assert {seen.status for seen in checks} == {ct.Status.TIMEOUT if fault == "hangs" else ct.Status.EXEC_ERR}
    if stage in ("question", "answer"):
        assert (run.answer, run.stop) == (None, "guard")
    else:
        assert run.answer == "paid"
        assert run.observations[0].error is not None
        assert run.observations[0].error.code == "denied"
    assert bool(shop.paid) == (stage in ("result", "answer"))


async def test_plain_functions_run_in_threads_and_do_not_block_the_loop() -> None:
    @ct.guard("call")
    def blocking(call: ct.GuardedCall) -> None:
        time.sleep(0.2)

    turns = calls(*[("pay", {"amount": n}) for n in range(4)])
    started = time.perf_counter()
    run = await leader(turns, guards=[blocking]).run("pay", pool=Shop().pool)
    assert all(seen.ok for seen in run.observations)
    assert time.perf_counter() - started < 0.7


async def test_a_guard_asks_a_model_of_the_pool_and_its_run_pays() -> None:
    judge = ct.ModelSpec("judge", lambda: ScriptedModel("safe", "unsafe", strict=False), prices=ct.Prices(1, 1))

    @ct.guard("call", models=("judge",))
    async def judged(call: ct.GuardedCall, ctx: ct.Context[Any]) -> ct.Deny | None:
        reply = await ctx.model("judge").chat(f"May {call.name} {call.arguments} be called?")
        return None if reply.text == "safe" else ct.Deny("unsafe")

    shop = Shop()
    pool = ct.Pool.of(*shop.pool.members, judge)
    turns = calls(("pay", {"amount": 1})), calls(("pay", {"amount": 2}))
    run = await leader(*turns, guards=[judged]).run("pay", pool=pool, budget=ct.Budget(calls=2))
    assert shop.paid == {1: 1}
    assert run.usage.calls == 2 - 1  # a check is no call of the budget, and neither is a call that was denied
    asked = [e for e in run.events if isinstance(e, ct.events.CallStarted) and e.kind == "model"]
    assert [event.parent for event in asked] == ["guard1.call.1.1", "guard1.call.2.1"]


async def test_dependencies_reach_guards() -> None:
    @ct.guard("question")
    def member(question: str, ctx: ct.Context[set[str]]) -> ct.Deny | None:
        return None if "ada" in ctx.deps else ct.Deny("not known")

    assert (await leader(guards=[member]).run("q", pool=Shop().pool, deps={"ada"})).ok
    assert (await leader(guards=[member]).run("q", pool=Shop().pool, deps={"bob"})).stop == "guard"


# -- declared wrongly --------------------------------------------------------------------------------------------------


def any_guard(seen: Any) -> None:
    """Lets everything pass."""


def no_guard() -> None:
    """Looks at nothing."""


def test_wrong_declarations_are_refused_with_what_is_expected() -> None:
    wrong_stage: Any = "calls"
    wrong_guards: Any = [print]
    with pytest.raises(ct.SpecError, match="expected one of question, call, result, answer"):
        ct.guard(wrong_stage)(any_guard)
    with pytest.raises(ct.SpecError, match=r"what it looks at, and maybe a Context"):
        ct.guard("call")(no_guard)
    with pytest.raises(ct.SpecError, match="only"):
        ct.guard("answer", only="pay")(any_guard)
    with pytest.raises(ct.SpecError, match="beside"):
        ct.guard("call", beside=True)(any_guard)
    model = ScriptedModel("x")
    with pytest.raises(ct.UsageError, match=r"make a guard with @concertino.guard"):
        ct.Orchestrator(model, guards=wrong_guards)
    with pytest.raises(ct.UsageError, match="two are called 'passes'"):
        ct.Orchestrator(model, guards=[passes, passes])
    with pytest.raises(ct.UsageError, match="expected 'provider/name'"):
        ct.Orchestrator(model, guards=["secrets"])
    with pytest.raises(ct.UsageError, match="guards of an agent are not asked"):
        ct.Orchestrator("m", guards=[passes]).as_agent("sub", "Sub.")


# -- resumed -----------------------------------------------------------------------------------------------------------


async def test_a_resumed_run_reads_the_verdicts_and_asks_no_guard_again(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def count(stage: Any, verdict: Any = None) -> ct.Guard:
        @ct.guard(stage, name=f"of_{stage}")
        def judge(seen: Any) -> Any:
            about = "1" if isinstance(seen, str) else seen.call_id
            asked[f"{stage} {about}"] += 1
            return verdict(seen) if verdict else None

        return judge

    guards = [
        count("question", lambda text: ct.Replace(text + "!")),
        count("call", lambda call: ct.Replace({"amount": call.arguments["amount"] * 2}) if call.arguments else None),
        count("result", lambda result: ct.Replace(f"<{result.content}>")),
        count("answer", lambda text: ct.Replace(text.upper())),
    ]
    turns = [calls(("pay", {"amount": 1}), ("buy_all", {})), calls(("pay", {"amount": 3}))]
    path = tmp_path / "whole.jsonl"

    def pool(shop: Shop) -> ct.Pool:
        @ct.agent
        async def buy_all(ctx: ct.Context[Any]) -> str:
            """Buy several things."""
            seen = [await ctx.call("pay", {"amount": n}) for n in (10, 20)]
            return " ".join(str(each.content) for each in seen)

        return ct.Pool.of(*shop.pool.members, buy_all)

    whole = await leader(*turns, guards=guards).run("q", pool=pool(Shop()), trace=path)
    assert (whole.answer, whole.question) == ("PAID", "q!")
    assert [seen.content for seen in whole.observations] == [
        "<paid 2, card 4000-1234>",
        "<<paid 20, card 4000-1234> <paid 40, card 4000-1234>>",
        "<paid 6, card 4000-1234>",
    ]
    lines = path.read_bytes().splitlines(keepends=True)
    script = [*turns, FINAL, ANSWER]
    for cut in range(2, len(lines)):
        asked.clear()
        torn = tmp_path / f"{cut}.jsonl"
        torn.write_bytes(b"".join(lines[:cut]))
        trace = ct.Trace.load(torn)
        ended = {record["id"] for record in trace.of_kind("result")}
        known = {
            f"{record['arguments']['stage']} {record['arguments']['about']}"
            for record in trace.of_kind("intent")
            if record["kind"] == "guard" and record["id"] in ended
        }
        shop = Shop()
        resumed = ct.Orchestrator(ScriptedModel(*script[len(trace.replies()) :] or "-", strict=False), guards=guards)
        run = await resumed.resume(torn, pool=pool(shop))
        assert (run.answer, run.question) == ("PAID", "q!"), cut
        assert not known & set(asked), cut
        again = {seen.call_id for seen in run.observations if seen.error and seen.error.code == "unknown_outcome"}
        for before, after in zip(whole.observations, run.observations, strict=True):
            assert before.content == after.content or after.call_id in again or "/" in str(trace.in_doubt()), cut


async def test_other_guards_than_before_are_refused_on_resume(tmp_path: Path) -> None:
    @ct.tool(approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    path = tmp_path / "t.jsonl"
    run = await leader(calls(("pay", {})), guards=[passes]).run("q", pool=ct.Pool.of(pay), trace=path)
    assert run.stop == "suspended"
    with pytest.raises(ct.TraceError, match=r"guards \['question passes'\] are now \[\]"):
        await leader(calls(("pay", {})), guards=[]).resume(path, pool=ct.Pool.of(pay), decisions={"1.1": True})
    done = await leader(guards=[passes]).resume(path, pool=ct.Pool.of(pay), decisions={"1.1": True})
    assert done.answer == "paid"


async def test_a_guard_whose_members_are_not_in_the_pool_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    @ct.guard("call", only="pya")
    def limit(call: ct.GuardedCall) -> ct.Deny:
        return ct.Deny("too much")

    @ct.guard("call", only=["pay", "elsewhere/*"])
    def other(call: ct.GuardedCall) -> None:
        return None

    shop = Shop()
    leader = ct.Orchestrator(ScriptedModel(ANSWER, ANSWER), guards=[limit, other])
    for _ in range(2):
        await leader.run("q", pool=shop.pool)
    told = [record.getMessage() for record in caplog.records if record.name == "concertino"]
    assert told == ["guard 'limit': only=('pya',) fits no member of the pool; did you mean 'pay'?"]
