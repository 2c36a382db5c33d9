"""What is made of a whole pool is made once and shared by its runs: a run over many tools begins like one over few."""

from __future__ import annotations

import gc
import sys
import weakref
from types import FrameType

import concertino as ct
import pytest
from concertino.core.function_objects import FunctionObjects, made_once, names_of
from concertino.testing import ScriptedModel, fake_tool

STRATEGIES = ["parallel-rounds", "serial-calls", "agent-graph", "dependency-plan"]


def many(count: int) -> ct.Pool:
    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    return ct.Pool([fake_tool(f"tool_{number}", schema=schema) for number in range(count)])


def test_a_pool_that_the_same_model_leads_again_is_the_same_pool() -> None:
    pool, model = many(3), ScriptedModel()
    first, second = ct.Orchestrator(model), ct.Orchestrator(model, "serial-calls")
    assert first._with_model(pool) is second._with_model(pool)
    assert first._with_model(pool) is not ct.Orchestrator(ScriptedModel())._with_model(pool)


def test_a_pool_keeps_no_model_object_that_led_it() -> None:
    pool = many(3)
    models = [ScriptedModel("<answer>4</answer>") for _ in range(50)]
    gone = [weakref.ref(model) for model in models]
    assert [ct.Orchestrator(model).run_sync("2 + 2?", pool=pool).answer for model in models] == ["4"] * 50
    models.clear()
    gc.collect()
    assert [model for model in gone if model() is not None] == []


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_second_run_over_a_thousand_tools_calls_no_more_functions_than_one_over_ten(name: str) -> None:
    counts = []
    for size in (10, 1000):
        pool, counted = many(size), 0
        leader = ct.Orchestrator(ScriptedModel("nothing that is understood", strict=False), name)

        def count(frame: FrameType, event: str, _: object) -> None:
            nonlocal counted
            counted += event == "call"

        leader.run_sync("What is it?", pool=pool)
        sys.setprofile(count)
        try:
            leader.run_sync("What is it?", pool=pool)
        finally:
            sys.setprofile(None)
        counts.append(counted)
    assert counts[1] < 1.2 * counts[0] + 50


def test_what_was_made_of_a_list_is_given_again_and_the_oldest_is_forgotten() -> None:
    made: list[int] = []

    def make(tools: object, number: int) -> int:
        made.append(number)
        return number

    tools = FunctionObjects(many(2).to_openai())
    assert [made_once(tools, make, number) for number in (1, 2, 1, 2)] == [1, 2, 1, 2]
    assert made == [1, 2]
    assert [made_once(list(tools), make, 1) for _ in range(2)] == [1, 1]
    assert made == [1, 2, 1, 1]
    for number in range(3, 12):
        made_once(tools, make, number)
    made_once(tools, make, 1)
    assert made[-1] == 1
    assert names_of(list(tools)) == names_of(tools) == {"tool_0", "tool_1"}


def test_function_objects_given_to_the_outside_may_be_changed() -> None:
    pool = many(2)
    pool.to_openai()[0]["function"]["name"] = "another"
    assert names_of(pool.functions) == {"tool_0", "tool_1"}
