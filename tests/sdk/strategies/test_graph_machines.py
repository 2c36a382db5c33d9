"""AgentGraph and DependencyPlan under any texts and results: no exception, an end within few steps, faithful copies."""

from __future__ import annotations

import json
import os
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import Act, Ask, Done, Machine, Strategy, TaskContext
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from hypothesis import given, settings
from hypothesis import strategies as st

from .graph_texts import COT, DEBATE, DIAMOND, LOW, TEXT, TWO, agent, graph, tool
from .test_gap_format import CAPITALS, PLAN
from .test_gap_format import PIECES as GAP_PIECES
from .test_graph_format import PIECES as GRAPH_PIECES

FUZZ = settings(max_examples=int(os.environ.get("CONCERTINO_FUZZ", "60")), deadline=None)
TOOLS = [COT, DEBATE, tool("search", {"query": TEXT}, "query")]
STRATEGIES: list[Strategy] = [
    AgentGraph(),
    AgentGraph(dom="low", max_unreadable_replies=5),
    AgentGraph(strict=True, prepend_task=False),
    DependencyPlan(),
    DependencyPlan(schedule="ready", strict=True, max_rounds=2),
]
WHOLE = [
    TWO,
    DIAMOND,
    LOW,
    CAPITALS,
    f"<think>t</think>{PLAN}",
    "<think>t</think><search>a|b</search>",
    "",
    graph(agent("A", "x", "debate", roles=["a", "b"])),
    "<thinking>t</thinking><answer>4</answer>",
]
texts = st.sampled_from(WHOLE) | st.lists(st.sampled_from(GAP_PIECES + GRAPH_PIECES), max_size=12).map("".join)
endings = st.sampled_from(["stop", "stop", "stop", "length"])
replies = st.builds(lambda text, ending: ct.Reply(text, finish_reason=ending), texts, endings)


def observed(act: Act, good: list[bool]) -> list[ct.Observation]:
    """One observation per call, some of them failed."""
    found = []
    for place, call in enumerate(act.plan.calls):
        ok = good[place % len(good)]
        error = None if ok else ct.ErrorInfo("raised", "no")
        status = ct.Status.OK if ok else ct.Status.EXEC_ERR
        found.append(
            ct.Observation(f"{act.round}.{call.id}", call.name, status, "</observation>" if ok else None, error)
        )
    return found


def advance(machine: Machine, step: Any, reply: ct.Reply, good: list[bool]) -> None:
    machine.observe(observed(step, good), {"usd": 1.0}) if isinstance(step, Act) else machine.on_reply(reply)


@pytest.mark.timeout(3600)
@FUZZ
@given(st.sampled_from(STRATEGIES), st.lists(replies, min_size=1, max_size=8), st.lists(st.booleans(), min_size=1))
def test_any_conversation_comes_to_an_end_and_its_copies_to_the_same(
    strategy: Strategy, said: list[ct.Reply], good: list[bool]
) -> None:
    machine = strategy.begin(TaskContext("What is ${A}?", TOOLS))
    for turn in range(100):
        step = machine.step()
        if isinstance(step, Done):
            break
        restored = strategy.restore(json.loads(json.dumps(machine.dump())))
        forked = machine.fork()
        reply = said[turn % len(said)]
        for twin in (restored, forked):
            again = twin.step()
            assert type(again) is type(step)
            if isinstance(step, Ask):
                assert isinstance(again, Ask)
                assert list(again.messages) == list(step.messages)
            advance(twin, again, reply, good)
        advance(machine, step, reply, good)
        assert restored.dump() == forked.dump() == machine.dump()
    assert isinstance(machine.step(), Done)
    assert machine.step().stop in ct.STOP_REASONS  # type: ignore[union-attr]
