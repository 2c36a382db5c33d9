"""Models offered to the orchestrator as agents, which it reads about as the pool describes and prices them."""

from __future__ import annotations

import random

import concertino as ct
import pytest
from concertino.testing import ScriptedModel, fake_tool


def model(name: str, answer: str = "", **options: object) -> ct.ModelSpec:
    return ct.ModelSpec(name, lambda: ScriptedModel(answer or name, strict=False), **options)  # type: ignore[arg-type]


def seen(pool: ct.Pool) -> dict[str, str]:
    return {tool["function"]["name"]: tool["function"]["description"] for tool in pool.to_openai()}


POOL = ct.Pool.of(model("acme/small", description="Good at sums."), model("acme/large", prices=ct.Prices(3, 15)))


def test_an_offered_model_is_read_with_its_description_and_its_price() -> None:
    assert seen(POOL.offering("acme/*")) == {
        "ask_small": "Good at sums.",
        "ask_large": "Ask the language model acme/large.\nPrice: $3 / $15 per million tokens read / written.",
    }


def test_a_model_that_is_not_offered_is_not_shown() -> None:
    assert seen(POOL.offering("acme/small")) == {"ask_small": "Good at sums."}
    assert seen(POOL) == {}
    with pytest.raises(ct.PoolError, match="no model 'acme/tiny': no installed provider is called 'acme'"):
        POOL.offering("acme/tiny")


def test_another_description_or_price_is_read_at_once() -> None:
    pool = POOL.offering("*").describe({"acme/large": "Writes well."}).price({"acme/small": ct.Prices(0.1, 0.2)})
    assert seen(pool) == {
        "ask_small": "Good at sums.\nPrice: $0.1 / $0.2 per million tokens read / written.",
        "ask_large": "Writes well.\nPrice: $3 / $15 per million tokens read / written.",
    }


def test_the_model_behind_an_agent_is_swapped_and_the_agent_keeps_its_name() -> None:
    pool = POOL.offering("acme/small").bind(orchestrator="acme/large")
    swapped = pool.replace("acme/small", model("other/new", "42", description="Brand-new."))
    assert seen(swapped) == {"ask_small": "Brand-new."}
    leader = ScriptedModel([("ask_small", {"task": "6 * 7"})], [("final_answer", {})], "forty-two")
    run = ct.Orchestrator(leader).run_sync("6 * 7?", pool=swapped)
    assert [(o.name, o.content) for o in run.observations] == [("acme/ask_small", "42")]
    asked = [record["name"] for record in run.trace.of_kind("intent") if record["kind"] == "model"]
    assert asked == ["other/new"]


def test_a_model_that_is_offered_or_routed_to_cannot_be_taken_away() -> None:
    with pytest.raises(ct.PoolError, match="agent 'acme/ask_small' needs a model"):
        POOL.offering("acme/small").without("acme/small")
    routed = POOL.adding(ct.router("both", "acme/small", "acme/large"))
    with pytest.raises(ct.PoolError, match="router 'both' needs a model"):
        routed.without("acme/large")


def test_keeping_an_agent_or_a_router_keeps_its_models() -> None:
    pool = POOL.adding(fake_tool(), model("x/y")).offering("acme/small").adding(ct.router("r", "acme/large", "x/y"))
    assert [m.name for m in pool.only("*/ask_small").members] == ["acme/small", "acme/ask_small"]
    assert [m.name for m in pool.only("r").members] == ["acme/large", "x/y", "r"]


def test_a_model_that_fails_is_observed_as_the_agent_s_failure() -> None:
    def fail() -> ct.Model:
        return ScriptedModel(ct.ProviderError("no such key", failure=ct.FailureClass.AUTH), strict=False)

    pool = ct.Pool.of(ct.ModelSpec("acme/locked", fail)).offering("*")
    leader = ScriptedModel([("ask_locked", {"task": "?"})], [("final_answer", {})], "nothing")
    run = ct.Orchestrator(leader).run_sync("?", pool=pool)
    (observation,) = run.observations
    assert (observation.status, observation.error and observation.error.code) == ("EXEC_ERR", "rejected")


def test_random_variations_for_training_draw_subset_alias_and_price_schedule_and_repeat_by_seed() -> None:
    """ToolOrchestra's general tool configuration: a policy that never sees the same pool twice."""
    models = [model(f"acme/m{number}", prices=ct.Prices(1, 1)) for number in range(8)]
    pool = ct.Pool.of(*models).offering("*")
    schedules = [{spec.name: ct.Prices(factor, factor) for spec in models} for factor in (1, 2, 4)]

    def draw(seed: int) -> ct.Pool:
        return pool.sample(random.Random(seed), keep=0.5, rename=0.5, prices=schedules)

    drawn = [draw(seed) for seed in range(200)]
    assert [p.id for p in drawn] == [draw(seed).id for seed in range(200)]
    assert len({p.id for p in drawn}) > 190
    sizes = [len(p.actions) for p in drawn]
    assert min(sizes) >= 1
    assert 3.5 < sum(sizes) / len(sizes) < 4.5
    shown = [tool["function"] for p in drawn for tool in p.to_openai()]
    renamed = sum(tool["name"].startswith("agent_") for tool in shown) / len(shown)
    assert 0.4 < renamed < 0.6
    for factor in (1, 2, 4):
        share = sum(f"Price: ${factor} /" in tool["description"] for tool in shown) / len(shown)
        assert 0.2 < share < 0.47
