"""Descriptions in a pool: what the orchestrator reads of them, and models that are several."""

from __future__ import annotations

from pathlib import Path

import concertino as ct
import pytest
from concertino_bench.model_cards import describe

from .answering import PER_ANSWER, TASKS, Answering, Writing, knows, spec

# -- what the orchestrator reads ---------------------------------------------------------------------------------------


def read_by_the_orchestrator(pool: ct.Pool) -> dict[str, str]:
    return {tool["function"]["name"]: tool["function"]["description"] for tool in pool.to_openai()}


@pytest.mark.parametrize("offered_first", [True, False])
async def test_the_orchestrator_reads_the_description_of_a_model_that_it_is_offered(
    tmp_path: Path, offered_first: bool
) -> None:
    writer = spec("acme/author", Writing([("The model adds without slips.", ["sums"])]))
    pool = ct.Pool.of(spec("acme/one", Answering(knows("sums"))), writer, writer="acme/author")
    if offered_first:
        pool = pool.offering("acme/one")
    assert "Measured on" not in "".join(read_by_the_orchestrator(pool).values())
    found = await describe(pool, TASKS, models=["one"], cache=tmp_path)
    described = found.pool if offered_first else found.pool.offering("acme/one")
    text = read_by_the_orchestrator(described)["ask_one"]
    assert text.startswith("Strong: The model adds without slips. Measured on 10 tasks: 50 % correct")
    assert found.descriptions[0].text in text


async def test_another_description_is_another_pool_for_the_orchestrator(tmp_path: Path) -> None:
    pool = ct.Pool.of(spec("acme/one", Answering(knows("sums")))).offering("acme/*")
    found = await describe(pool, TASKS, cache=tmp_path)
    assert found.pool.id != pool.id
    assert pool.diff(found.pool).changed == ("acme/one",)


# -- routers -----------------------------------------------------------------------------------------------------------


def routed() -> tuple[ct.Pool, list[Answering]]:
    """Two models, and a router that asks them in turn."""
    models = [Answering(knows("sums", "words")), Answering(knows("sums", "words"))]
    prices = ct.Prices(1.0, 2.0), ct.Prices(3.0, 6.0)
    specs = [spec(f"acme/m{n}", models[n], prices=prices[n]) for n in (0, 1)]
    return ct.Pool.of(*specs, ct.router("both", "acme/m0", "acme/m1", policy="round-robin")), models


async def test_a_router_is_described_by_what_its_models_answer_and_cost(tmp_path: Path) -> None:
    pool, models = routed()
    found = await describe(pool, TASKS, models=["both"], cache=tmp_path, budget=ct.Budget(usd=1))
    (described,) = found.descriptions
    assert described.profile.overall.accuracy == 1
    assert [model.asked for model in models] == [5, 5]
    assert described.profile.usd_per_task == pytest.approx((PER_ANSWER + 3 * PER_ANSWER) / 2)


async def test_a_router_over_a_changed_model_is_asked_again(tmp_path: Path) -> None:
    pool, models = routed()
    await describe(pool, TASKS, models=["both"], cache=tmp_path)
    await describe(pool.price({"acme/m1": None}), TASKS, models=["both"], cache=tmp_path)
    assert sum(model.asked for model in models) == 10
    changed = pool.replace("acme/m1", spec("acme/m1", models[1], options={"quantisation": "4 bits"}))
    await describe(changed, TASKS, models=["both"], cache=tmp_path)
    assert sum(model.asked for model in models) == 20


async def test_a_refused_key_behind_a_router_is_no_failure_of_the_router(tmp_path: Path) -> None:
    class NoKey(ct.Model):
        async def chat(self, request: ct.ChatRequest) -> ct.Reply:
            raise ct.ProviderError.from_http(401, "no key")

    pool = ct.Pool.of(spec("acme/one", NoKey()), spec("other/two", NoKey()), ct.router("both", "acme/one", "other/two"))
    found = await describe(pool, TASKS, models=["both"], cache=tmp_path)
    assert found.descriptions == ()
    assert "no key" in found.unfinished["both"]
