"""The cascade by expected value: whom it asks, when it stops, and what it believes."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

import concertino as ct
import pytest
from concertino_bench.baselines import ValueCascade
from concertino_bench.baselines.value import Judgement

QUESTION = "How many rolls are left?"
SHARES = {"weak": 0.4, "fair": 0.65, "strong": 0.9}
PRICES = {"weak": 1.0, "fair": 0.5, "strong": 20.0}


class Says(ct.Model):
    """Gives one answer and counts how often it is asked; without an answer it fails."""

    def __init__(self, answer: str = "") -> None:
        self.answer, self.asked = answer, 0

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        self.asked += 1
        if not self.answer:
            raise ct.ProviderError("it is closed today", failure=ct.FailureClass.CALLER)
        return ct.Reply(self.answer, usage=ct.Usage(input_tokens=10, output_tokens=5))


def make_pool(**models: Says) -> ct.Pool:
    specs = [
        ct.ModelSpec(name, lambda model=model: model, f"Card of {name}.", ct.Prices(PRICES[name], PRICES[name]))
        for name, model in models.items()
    ]
    return ct.Pool(specs, roles={"orchestrator": specs[-1].name}).offering("*")


def estimated(question: str, cards: Any) -> dict[str, float]:
    assert question == QUESTION
    return {
        name: next(share for told, share in SHARES.items() if card == f"Card of {told}.")
        for name, card in cards.items()
    }


async def run(strategy: ct.Strategy, pool: ct.Pool, **options: Any) -> ct.Run:
    return await ct.Orchestrator("orchestrator", strategy).run(QUESTION, pool=pool, **options)


async def test_it_stops_when_cheap_members_agree() -> None:
    strong = Says("26")
    pool = make_pool(weak=Says("We get 25."), fair=Says("The answer is 25."), strong=strong)
    done = await run(ValueCascade(cost_weight=30.0, answers="number", estimate=estimated), pool)
    assert (done.answer, strong.asked) == ("We get 25.", 0)
    assert done.detail == "2 asked; right with the probability 0.93"


async def test_it_asks_the_strong_one_when_they_differ_and_believes_it() -> None:
    pool = make_pool(weak=Says("24"), fair=Says("25"), strong=Says("26"))
    done = await run(ValueCascade(cost_weight=30.0, answers="number", estimate=estimated), pool)
    assert done.answer == "26"


async def test_an_expensive_member_is_not_asked_where_a_right_answer_is_worth_less() -> None:
    models = {"weak": Says("24"), "fair": Says("25"), "strong": Says("26")}
    done = await run(ValueCascade(cost_weight=200.0, answers="number", estimate=estimated), make_pool(**models))
    assert (done.answer, models["strong"].asked) == ("25", 0)


async def test_a_member_that_fails_or_says_nothing_tells_nothing() -> None:
    pool = make_pool(weak=Says("It depends."), fair=Says(), strong=Says("26"))
    assert (await run(ValueCascade(answers="number", estimate=estimated), pool)).answer == "26"
    silent = await run(ValueCascade(estimate=estimated), make_pool(weak=Says(), fair=Says()))
    assert (silent.answer, silent.stop) == (None, "model")


async def test_the_order_of_the_members_changes_nothing() -> None:
    rng = Random(3)
    for _ in range(20):
        said = {name: str(rng.randrange(3)) for name in SHARES}
        found = set()
        for order in permutations(SHARES):
            models = {name: Says(said[name]) for name in order}
            done = await run(ValueCascade(cost_weight=30.0, answers="number", estimate=estimated), make_pool(**models))
            found.add((done.answer, tuple(models[name].asked for name in SHARES)))
        assert len(found) == 1, said


def test_what_is_believed_is_bayes_rule() -> None:
    """Against counting: members drawn many times, the share of right answers among runs with the same pattern."""
    judgement = Judgement((0.7, 0.5, 0.4), (0.0, 0.0, 0.0), coincidence=0.25)
    rng, counts = Random(5), dict.fromkeys((True, False), (0, 0))
    for _ in range(40_000):
        said = ["right" if rng.random() < share else f"wrong {rng.randrange(4)}" for share in judgement.shares]
        if said[0] == said[1] != said[2]:
            right, runs = counts[True]
            counts[True] = (right + (said[0] == "right"), runs + 1)
    right, runs = counts[True]
    _, believed = judgement.leading(((0, "a"), (1, "a"), (2, "b")))
    assert believed == pytest.approx(right / runs, abs=0.02)
    assert judgement.leading(((0, "a"),)) == ("a", pytest.approx(0.7))


async def test_shares_and_prices_may_be_given() -> None:
    pool = make_pool(weak=Says("24"), fair=Says("25"))
    given = ValueCascade(members=("ask_weak", "ask_fair"), shares=(0.9, 0.2), prices=(0.0, 1.0), cost_weight=1.0)
    assert (await run(given, pool)).answer == "24"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"shares": (0.5,)}, "one number for each of the 0 members"),
        ({"cost_weight": -1.0}, "a number, 0 or more"),
        ({"coincidence": 0.0}, "a probability above 0"),
        ({"members": ("a",), "shares": (1.5,)}, "shares from 0 to 1"),
    ],
)
def test_a_wrong_setting_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ct.UsageError, match=told):
        ValueCascade(**wrong)


async def test_an_unknown_price_is_refused_where_prices_count() -> None:
    spec = ct.ModelSpec("free", lambda: Says("1"), "Card of weak.")
    pool = ct.Pool([spec], roles={"orchestrator": "free"}).offering("*")
    with pytest.raises(ct.UsageError, match="the price of 'ask_free' is unknown"):
        await run(ValueCascade(cost_weight=1.0, estimate=estimated), pool)
    assert (await run(ValueCascade(estimate=estimated), pool)).answer == "1"
