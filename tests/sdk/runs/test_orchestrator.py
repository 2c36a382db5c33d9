"""Whole runs: from a question to an answer, and every way in which a run can end."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import concertino as ct
import pytest
from concertino.core.events import CallEnded, Planned, Replied
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.testing import ScriptedModel

from .conftest import FINAL, Texts, round_of

Led = Callable[..., ct.Orchestrator]
ANSWER = "<answer>\\boxed{3}</answer>"


async def test_a_question_goes_in_and_an_answer_comes_out(pool: ct.Pool, led_by: Led) -> None:
    run = await led_by(round_of(("add", {"a": 1, "b": 2})), FINAL, ANSWER).run("1 + 2?", pool=pool)
    assert (run.answer, run.stop) == ("\\boxed{3}", "answered")
    assert [seen.content for seen in run.observations] == [3]
    assert run.require_answer() == "\\boxed{3}"


async def test_usage_adds_up_over_orchestrator_tools_and_sub_agents(pool: ct.Pool, led_by: Led) -> None:
    turns = round_of(("add", {"a": 1, "b": 2}), ("ask_worker", {"question": "?"})), FINAL, ANSWER
    run = await led_by(*turns).run("q", pool=pool)
    assert run.usage.calls == 2
    assert run.usage.units == 3
    assert run.usage.input_tokens == 4 * 100  # three turns of the leader, one of the worker
    assert run.usage.usd == pytest.approx(0.01 + 4 * (100 * 1.0 + 10 * 10.0) / 1e6)
    agent = run.observations[1]
    assert agent.usage.input_tokens == 100
    assert agent.content == "w1"


async def test_faults_come_back_as_statuses_and_siblings_are_unharmed(pool: ct.Pool, led_by: Led) -> None:
    faulty = round_of(("add", {"a": 1, "b": 2}), ("add", {"a": "x", "b": 2}), ("ad", {}), ("hang", {}))
    run = await led_by(faulty, FINAL, ANSWER).run("q", pool=pool)
    assert [seen.status.value for seen in run.observations] == ["OK", "PARSE_ERR", "PARSE_ERR", "TIMEOUT"]
    codes = [seen.error.code for seen in run.observations if seen.error]
    assert codes == ["invalid_arguments", "unknown_name", "deadline"]


async def test_the_remaining_budget_is_shown_to_the_orchestrator(pool: ct.Pool) -> None:
    model = Texts(round_of(("add", {"a": 1, "b": 2})), FINAL, ANSWER)
    spec = ct.ModelSpec("m/lead", lambda: model)
    await ct.Orchestrator(spec).run("q", pool=pool, budget=ct.Budget(rounds=5, units=4))
    assert '<budget>{"rounds": 5, "units": 4.0}</budget>' in model.requests[0].messages[1].text
    assert '<budget>{"rounds": 4, "units": 3.0}</budget>' in model.requests[1].messages[3].text


async def test_a_call_that_the_budget_does_not_cover_is_observed_and_not_run(pool: ct.Pool, led_by: Led) -> None:
    many = round_of(*[("add", {"a": n, "b": 0}) for n in range(4)])
    run = await led_by(many, FINAL, ANSWER).run("q", pool=pool, budget=ct.Budget(units=2))
    assert [seen.status.value for seen in run.observations].count("OK") == 2
    refused = [seen for seen in run.observations if not seen.ok]
    assert {seen.error.code for seen in refused if seen.error} == {"budget_exhausted"}
    assert all(seen.attempts == 0 for seen in refused)
    assert run.usage.units == 2


async def test_a_token_budget_ends_the_run_before_the_model_is_asked_again(pool: ct.Pool, led_by: Led) -> None:
    orchestrator = led_by(*[round_of(("add", {"a": 1, "b": 2}))] * 9, sampling=ct.Sampling(max_tokens=20))
    run = await orchestrator.run("q", pool=pool, budget=ct.Budget(tokens=1500))
    assert (run.answer, run.stop) == (None, "budget")
    assert run.usage.tokens <= 1500
    assert run.rounds


async def test_the_deadline_ends_a_run_in_the_middle_of_a_call(pool: ct.Pool, led_by: Led) -> None:
    slow = ct.tool(name="slow", description="Slow.", timeout=None)(_never)
    run = await led_by(*[round_of(("slow", {}))] * 3).run("q", pool=pool.adding(slow), budget=ct.Budget(seconds=0.3))
    assert run.stop == "deadline"
    assert run.observations[0].status is ct.Status.TIMEOUT


async def _never() -> str:
    await asyncio.Event().wait()
    return ""


async def test_a_model_that_does_not_answer_ends_the_run_with_its_reason(pool: ct.Pool, led_by: Led) -> None:
    refused = ct.ProviderError("no such key", failure=ct.FailureClass.AUTH)
    run = await led_by(refused).run("q", pool=pool)
    assert run.stop == "model"
    assert "no such key" in run.detail
    with pytest.raises(ct.RunError, match="without an answer") as raised:
        run.require_answer()
    assert raised.value.run is run


async def test_texts_without_calls_end_the_run_as_format(pool: ct.Pool, led_by: Led) -> None:
    run = await led_by("a", "b", "c").run("q", pool=pool)
    assert run.stop == "format"


async def test_a_cancelled_run_keeps_what_was_done_and_leaves_nothing_running(
    pool: ct.Pool, led_by: Led, tmp_path: Path
) -> None:
    turns = round_of(("add", {"a": 1, "b": 2})), round_of(("add", {"a": 3, "b": 4}), ("hang", {"seconds": 50}))
    before = asyncio.all_tasks()
    results: list[object] = []
    two_results = asyncio.Event()

    def watch(event: object) -> None:
        if isinstance(event, CallEnded):
            results.append(event)
            if len(results) == 2:
                two_results.set()

    pool = pool.replace("hang", _unlimited())
    handle = led_by(*turns).start("q", pool=pool, trace=tmp_path, on_event=watch)
    await asyncio.wait_for(two_results.wait(), 60)
    run = await handle.cancel()
    assert run.stop == "cancelled"
    assert [seen.content for seen in run.observations if seen.ok] == [3, 7]
    assert asyncio.all_tasks() == before
    assert ct.Trace.load(str(run.path)).finished


def _unlimited() -> ct.ToolSpec:
    async def hang(seconds: float = 100) -> str:
        await asyncio.sleep(seconds)
        return ""

    return ct.tool(name="hang", description="Take long.", timeout=None)(hang)


async def test_cancelling_the_caller_cancels_the_run(pool: ct.Pool, led_by: Led) -> None:
    before = asyncio.all_tasks()
    task = asyncio.create_task(led_by(round_of(("hang", {}))).run("q", pool=pool))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before


async def test_stream_yields_every_event_and_the_run_last(pool: ct.Pool, led_by: Led) -> None:
    orchestrator = led_by(round_of(("add", {"a": 1, "b": 2})), FINAL, ANSWER)
    every = [item async for item in orchestrator.stream("q", pool=pool)]
    items = [item for item in every if not isinstance(item, ct.events.TextDelta)]
    assert isinstance(items[-1], ct.Run)
    assert [type(item) for item in items[:-1]] == [type(event) for event in items[-1].events]
    assert sum(isinstance(item, Planned) for item in items) == 1


async def test_leaving_a_stream_cancels_the_run(pool: ct.Pool, led_by: Led) -> None:
    before = asyncio.all_tasks()
    stream = led_by(round_of(("hang", {}))).stream("q", pool=pool)
    async for item in stream:
        if isinstance(item, Planned):
            break
    await stream.aclose()  # type: ignore[attr-defined]
    assert asyncio.all_tasks() == before


async def test_a_summariser_of_its_own_writes_the_answer(pool: ct.Pool, led_by: Led) -> None:
    summary = Texts("<answer>from the summariser</answer>")
    pool = pool.adding(ct.ModelSpec("m/sum", lambda: summary)).bind(summariser="m/sum")
    strategy = ct.ParallelRounds(summariser="summariser")
    run = await led_by(round_of(("add", {"a": 1, "b": 2})), FINAL, strategy=strategy).run("q", pool=pool)
    assert run.answer == "from the summariser"
    assert "q" in summary.requests[0].messages[1].text


async def test_one_executor_serves_many_runs_at_once(pool: ct.Pool, led_by: Led) -> None:
    async with ct.Executor() as executor:
        turns = round_of(("add", {"a": 1, "b": 2})), FINAL, ANSWER
        runs = await asyncio.gather(*[led_by(*turns, executor=executor).run(f"q{n}", pool=pool) for n in range(20)])
    assert [run.answer for run in runs] == ["\\boxed{3}"] * 20
    assert len({run.id for run in runs}) == 20


async def test_a_repeated_call_can_be_answered_with_the_earlier_result(pool: ct.Pool, led_by: Led) -> None:
    again = round_of(("add", {"a": 1, "b": 2}))
    run = await led_by(again, again, FINAL, ANSWER, duplicates="reuse").run("q", pool=pool)
    assert [(seen.content, seen.replayed, seen.attempts) for seen in run.observations] == [(3, False, 1), (3, True, 0)]
    assert run.usage.calls == 1


async def test_a_repeated_call_can_be_refused(pool: ct.Pool, led_by: Led) -> None:
    again = round_of(("add", {"a": 1, "b": 2}))
    run = await led_by(again, again, FINAL, ANSWER, duplicates="refuse").run("q", pool=pool)
    error = run.observations[1].error
    assert error is not None
    assert error.code == "duplicate"
    assert "'1.1'" in error.message


async def test_the_critical_path_is_not_longer_than_the_run(pool: ct.Pool, led_by: Led) -> None:
    pair = round_of(("hang", {"seconds": 0.05}), ("hang", {"seconds": 0.1}))
    run = await led_by(pair, FINAL, ANSWER).run("q", pool=pool)
    assert 0.1 <= run.critical_path() <= run.seconds


@pytest.mark.parametrize("question", ["", "   ", "\n"])
async def test_an_empty_question_is_refused_before_anything_runs(pool: ct.Pool, led_by: Led, question: str) -> None:
    with pytest.raises(ct.UsageError, match="the question is empty"):
        await led_by().run(question, pool=pool)


async def test_a_budget_that_no_call_fits_is_refused_before_anything_runs(led_by: Led) -> None:
    dear = ct.tool(name="dear", description="Dear.", cost=ct.Cost(units=5))(_never)
    with pytest.raises(ct.BudgetError, match="budget units=2 fits no call: the cheapest member of the pool needs 5"):
        await led_by().run("q", pool=ct.Pool.of(dear), budget=ct.Budget(units=2))


async def test_a_budget_in_usd_needs_the_price_of_every_model_in_use(pool: ct.Pool) -> None:
    with pytest.raises(ct.BudgetError, match="the price of m/lead is unknown"):
        await ct.Orchestrator(ct.ModelSpec("m/lead", Texts)).run("q", pool=pool, budget=ct.Budget(usd=1))


async def test_a_pool_without_the_orchestrators_model_says_how_to_bind_one() -> None:
    lone = ct.tool(name="lone", description="Lone.")(_never)
    with pytest.raises(ct.PoolError, match=r"bind it with pool.bind\(orchestrator='provider/model'\)"):
        await ct.Orchestrator().run("q", pool=ct.Pool.of(lone))


async def test_events_reach_the_listener_in_order(pool: ct.Pool, led_by: Led) -> None:
    kinds: list[str] = []
    orchestrator = led_by(round_of(("add", {"a": 1, "b": 2})), FINAL, ANSWER)
    await orchestrator.run("q", pool=pool, on_event=lambda event: kinds.append(event.to_json()["t"]))
    assert kinds == ["run", "ask", "reply", "plan", "intent", "result", "ask", "reply", "ask", "reply", "end"]


async def test_replies_carry_usage_and_calls_their_parents(pool: ct.Pool, led_by: Led) -> None:
    run = await led_by(round_of(("ask_worker", {"question": "?"})), FINAL, ANSWER).run("q", pool=pool)
    inner = [event for event in run.events if isinstance(event, CallEnded) and event.parent]
    assert [(event.observation.name, event.parent) for event in inner] == [("m/worker", "1.1")]
    assert all(event.observation.usage.tokens == 110 for event in run.events if isinstance(event, Replied))


class Connected(Texts):
    """A model that counts how often it is closed."""

    def __init__(self, *turns: str) -> None:
        super().__init__(*turns)
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


async def test_a_model_object_of_several_runs_is_closed_after_the_last_of_them(pool: ct.Pool) -> None:
    held = asyncio.Event()

    class Slow(Connected):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            if "wait" in request.messages[1].text:
                await held.wait()
            assert self.closed == 0
            return await super().chat(request)

    model = Slow("<answer>1</answer>", "<answer>2</answer>")
    orchestrator = ct.Orchestrator(model)
    waiting = orchestrator.start("wait", pool=pool)
    await asyncio.sleep(0)
    await orchestrator.run("at once", pool=pool)
    assert model.closed == 0
    held.set()
    assert (await waiting).answer == "2"
    assert model.closed == 1


async def test_a_strategy_that_cannot_work_with_the_pool_says_so_before_anything_has_run(
    pool: ct.Pool, tmp_path: Path
) -> None:
    orchestrator = ct.Orchestrator(Texts(), DependencyPlan(tools={"search": "nobody"}))
    with pytest.raises(ct.UsageError, match="no such member is on offer"):
        await orchestrator.run("?", pool=pool, trace=tmp_path)
    assert os.listdir(tmp_path) == []  # noqa: PTH208


class Alone(ct.strategies.Strategy):
    """Its model's text is the answer."""

    name = "alone"
    needs_members = False

    def begin(self, context: ct.strategies.TaskContext) -> ct.strategies.Machine:
        from concertino.strategies.role_workflow import Agree, Role, RoleWorkflow

        return RoleWorkflow((Role("one", prompt="{question}"),), Agree("one.text", "one.text")).begin(context)

    def restore(self, dumped: Any) -> ct.strategies.Machine:
        raise NotImplementedError


async def test_a_strategy_that_needs_no_members_may_have_a_pool_of_models_alone() -> None:
    pool = ct.Pool.of(ct.ModelSpec("only", lambda: ScriptedModel("Seven.")), orchestrator="only")
    assert (await ct.Orchestrator(strategy=Alone()).run("What?", pool=pool)).answer == "Seven."


async def test_a_strategy_that_was_chosen_and_needs_members_refuses_a_pool_without_any() -> None:
    pool = ct.Pool.of(ct.ModelSpec("only", lambda: ScriptedModel("Seven.")), orchestrator="only")
    with pytest.raises(ct.PoolError, match=r"nothing to orchestrate; offer its models .* pool\.offering\(\"\*\"\)"):
        await ct.Orchestrator(strategy="parallel-rounds").run("What?", pool=pool)
    with pytest.raises(ct.PoolError, match=r"nothing to orchestrate; .* choose no strategy"):
        await ct.Orchestrator(ScriptedModel(), ParallelRounds()).run("What?")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"executor": ct.Limits()}, "an Executor"),
        ({"sampling": {"temperature": 0}}, r"a Sampling, such as Sampling\(temperature=0\)"),
        ({"duplicates": "never"}, "one of 'run', 'reuse', 'refuse'"),
        ({"approve": True}, "a function of an ApprovalRequest"),
        ({"before": len}, "a list of functions"),
        ({"after": [3]}, "a list of functions"),
        ({"instructions": 3}, "a text, or a function"),
        ({"arrange": "scorer/best"}, r"a function of a question and a pool, such as Shortlist\('scorer/best'\)"),
    ],
)
def test_an_option_of_another_type_is_refused_when_the_orchestrator_is_made(
    options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ct.UsageError, match=f"^{next(iter(options))}=.*: expected {expected}"):
        ct.Orchestrator(ScriptedModel(), **options)


def test_an_error_in_run_sync_does_not_come_with_that_of_a_loop_that_was_not_there() -> None:
    with pytest.raises(ct.UsageError) as caught:
        ct.Orchestrator(ScriptedModel()).run_sync("")
    assert caught.value.__context__ is None


async def test_a_trace_or_a_listener_of_another_type_is_refused_before_anything_runs() -> None:
    leader, wrong = ct.Orchestrator(ScriptedModel()), cast("Any", True)
    with pytest.raises(ct.UsageError, match=r"^trace=True is a bool; expected a path, as a text or a Path$"):
        await leader.run("q", trace=wrong)
    with pytest.raises(ct.UsageError, match=r"^on_event=True: expected a function of an event$"):
        await leader.run("q", on_event=wrong)
    with pytest.raises(ct.UsageError, match=r"^path=True is a bool; expected a path"):
        await leader.resume(wrong)
