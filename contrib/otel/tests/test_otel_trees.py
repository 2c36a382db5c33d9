"""The tree of spans of a run: whole, the same however often it is sent, and under the caller's span."""

import asyncio
from pathlib import Path

import concertino as ct
import pytest
from concertino_otel.command import send_trace
from concertino_otel.conventions import ATTRIBUTES, DIALECTS, SPAN_KINDS, names
from concertino_otel.fold import SpanFold, spans_of
from concertino_otel.ids import span_id
from concertino_otel.options import Options

from .five_strategies import NAMES, OUTCOMES, cut_in_a_call, leader_of, pool_of, run_of, trace_of, turns_of
from .otlp_receiver import assert_one_tree, receiving, values


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("name", NAMES)
async def test_a_run_is_one_tree_that_is_the_same_when_it_is_sent_twice(
    name: str, outcome: str, tmp_path: Path
) -> None:
    path = await trace_of(name, outcome, tmp_path)
    with receiving() as receiver:
        options = Options(receiver.url)
        done = await asyncio.to_thread(send_trace, path, options)
        first = receiver.spans()
        assert (done.over, done.sent) == (True, len(first))
        again = await asyncio.to_thread(send_trace, path, options)
        assert again == done
    root = assert_one_tree(first)
    assert [span.SerializeToString() for span in receiver.spans()[len(first) :]] == [
        span.SerializeToString() for span in first
    ]
    assert root.name == "invoke_agent concertino"
    assert values(root)["concertino.strategy"] == name
    kinds = {span.name.partition(" ")[0] for span in first}
    assert {"invoke_agent", "plan", "chat", "execute_tool"} <= kinds
    stop = values(root)["concertino.stop"]
    assert (root.status.code == root.status.STATUS_CODE_ERROR) is (stop != "answered")


@pytest.mark.parametrize("name", NAMES)
async def test_a_killed_run_is_shown_as_it_stands_and_whole_after_it_was_resumed(name: str, tmp_path: Path) -> None:
    cut = cut_in_a_call(await run_of(name, tmp_path))
    with receiving() as receiver:
        options = Options(receiver.url)
        half = await asyncio.to_thread(send_trace, cut, options)
        assert not half.over
        shown = receiver.spans()
        assert values(assert_one_tree(shown))["concertino.unfinished"] is True
        settled = {span.span_id for span in shown if "concertino.unfinished" not in values(span)}
        replies = len(ct.Trace.load(cut).replies())
        await leader_of(name, turns=turns_of(name)[replies:]).resume(cut, pool=pool_of())
        done = await asyncio.to_thread(send_trace, cut, options)
    assert done.over
    later = receiver.spans()[len(shown) :]
    # Nothing that was finished before the kill is sent again, and what was open is sent under the same ids.
    assert settled.isdisjoint(span.span_id for span in later)
    assert {span.span_id for span in shown} <= settled | {span.span_id for span in later}
    assert_one_tree([span for span in shown if span.span_id in settled] + later)


async def test_the_ids_are_made_from_the_run_alone(tmp_path: Path) -> None:
    path = await run_of("parallel-rounds", tmp_path)
    run_id = ct.Trace.load(path).run_id
    with receiving() as receiver:
        await asyncio.to_thread(send_trace, path, Options(receiver.url))
    by_call = {values(span).get("concertino.call.id"): span for span in receiver.spans()}
    assert by_call["1.2/1"].span_id == span_id(run_id, "1.2/1")
    assert by_call["1.2/1"].parent_span_id == span_id(run_id, "1.2")
    assert by_call["1.2"].parent_span_id == span_id(run_id, "run")
    assert by_call["ask.1"].parent_span_id == span_id(run_id, "plan.1")


@pytest.mark.parametrize("name", ["agent-graph", "dependency-plan"])
async def test_an_edge_of_a_graph_is_a_link(name: str, tmp_path: Path) -> None:
    path = await run_of(name, tmp_path)
    with receiving() as receiver:
        await asyncio.to_thread(send_trace, path, Options(receiver.url))
    by_call = {values(span).get("concertino.call.id"): span for span in receiver.spans()}
    assert [link.span_id for link in by_call["1.b"].links] == [by_call["1.a"].span_id]
    assert not by_call["1.a"].links


async def test_cost_budget_and_errors_are_attributes(tmp_path: Path) -> None:
    leader = leader_of("parallel-rounds")
    budget = ct.Budget(usd=1.0, units=10)
    run = await leader.run("q", pool=pool_of(fails=True), trace=tmp_path, budget=budget)
    with receiving() as receiver:
        await asyncio.to_thread(send_trace, Path(str(run.path)), Options(receiver.url))
    spans = {span.name: values(span) for span in receiver.spans()}
    root = spans["invoke_agent concertino"]
    assert root["concertino.cost.usd"] == pytest.approx(run.usage.usd)
    assert root["gen_ai.usage.input_tokens"] == run.usage.input_tokens
    assert (root["concertino.budget.usd"], root["concertino.budget.units"]) == (1.0, 10.0)
    assert spans["plan concertino"]["concertino.budget.remaining.units"] == 10.0
    assert spans["execute_tool work"]["error.type"] == "EXEC_ERR.raised"
    assert spans["execute_tool work"]["concertino.status"] == "EXEC_ERR"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", NAMES)
async def test_a_span_has_what_the_table_says_and_nothing_else(name: str, dialect: str, tmp_path: Path) -> None:
    path = await run_of(name, tmp_path, fails=True)
    with receiving() as receiver:
        options = Options.of({"semconv": dialect, "content": "spans"}).to(receiver.url)
        await asyncio.to_thread(send_trace, path, options)
    trace = ct.Trace.load(path)
    folded = spans_of(iter(trace.records), SpanFold())
    kinds = {span_id(trace.run_id, span.key): span.kind for span in folded}
    for span in receiver.spans():
        kind = kinds[span.span_id]
        known = {each.called(options.semconv): each for each in ATTRIBUTES if kind in each.spans}
        assert values(span).keys() <= known.keys(), (kind, values(span).keys() - known.keys())
        required = {called for called, each in known.items() if each.level == "required"}
        assert required <= values(span).keys(), kind
    assert set(kinds.values()) <= set(SPAN_KINDS)
    called = [name for name, _ in names(options.semconv, content=True).values()]
    assert len(called) == len(set(called))


async def test_a_call_of_a_name_that_a_model_made_up_does_not_tell_the_name(tmp_path: Path) -> None:
    turns = [ct.ParallelRounds().write_turn([ct.Call("secret_name", {}, "a")], ""), "<answer>x</answer>"]
    run = await leader_of("parallel-rounds", turns=[*turns, "<answer>x</answer>"]).run(
        "q", pool=pool_of(), trace=tmp_path, budget=ct.Budget(rounds=1)
    )
    with receiving() as receiver:
        await asyncio.to_thread(send_trace, Path(str(run.path)), Options(receiver.url))
    assert_one_tree(receiver.spans())
    assert b"secret_name" not in b"".join(body for _, body in receiver.bodies)
    assert [values(span)["error.type"] for span in receiver.spans() if span.name == "execute_tool unknown"] == [
        "PARSE_ERR.unknown_name"
    ]
