"""The scorer that is shipped, on cards that were written for these tests; and the rankings that routers use."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import concertino as ct
import concertino_scorer
import pytest
from concertino.plugins import PluginManager
from concertino.testing import ScriptedModel
from concertino_scorer import Scorer, published

WEIGHTS = Path(concertino_scorer.__file__).with_name("trained.npz")
QUESTION = "Which enzyme unwinds DNA before it is copied?"
CARDS = {
    "kemo": "Answered 29 of 30 biology questions correctly.",
    "bilo": "Answered 11 of 30 biology questions correctly.",
    "dura": "Answered 20 of 30 biology questions correctly.",
    "nati": "Answered 4 of 30 biology questions correctly.",
}


@pytest.fixture(scope="module")
def shipped() -> Scorer:
    return Scorer.shipped()


def pool_of(cards: dict[str, str]) -> ct.Pool:
    def solve(question: str) -> str:
        return question

    return ct.Pool.of(*(ct.tool(solve, name=name, description=card) for name, card in cards.items()))


def test_the_weights_are_small() -> None:
    assert WEIGHTS.stat().st_size < 12_000_000


def test_the_order_and_the_names_of_members_change_nothing(shipped: Scorer) -> None:
    listed = shipped.rank(QUESTION, pool_of(CARDS))
    assert [member.name for member in listed] == ["kemo", "dura", "bilo", "nati"]
    turned = shipped.rank(QUESTION, pool_of(dict(reversed(CARDS.items()))))
    assert [(m.name, round(m.belief.expected, 6)) for m in turned] == [
        (m.name, round(m.belief.expected, 6)) for m in listed
    ]
    renamed = shipped.rank(QUESTION, pool_of({f"x_{name}": card for name, card in CARDS.items()}))
    assert [member.name.removeprefix("x_") for member in renamed] == [member.name for member in listed]


def test_the_choice_follows_the_card_to_its_new_holder(shipped: Scorer) -> None:
    names, cards = list(CARDS), list(CARDS.values())
    moved = dict(zip(names, [*cards[1:], cards[0]], strict=True))
    assert shipped.rank(QUESTION, pool_of(moved))[0].name == "nati"


def router_pool(policy: str) -> ct.Pool:
    models = [
        ct.ModelSpec(
            f"far/{name}",
            partial(ScriptedModel, name, strict=False),
            description=card,
            prices=ct.Prices(price, price),
        )
        for (name, card), price in zip(CARDS.items(), (9, 1, 2, 1), strict=True)
    ]
    route = ct.router("clever", *(model.name for model in models), policy=policy)
    return ct.Pool.of(ask, *models, route, default="clever")


@ct.agent
async def ask(question: str, *, ctx: ct.Context) -> str:
    """Ask the default model."""
    return (await ctx.model("default").chat(question)).text


@pytest.mark.parametrize(("policy", "first"), [("scorer/best", "kemo"), ("scorer/sufficient", "dura")])
def test_a_router_asks_by_what_is_written_of_its_models(
    policy: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = PluginManager(installed=False)
    manager.register(published, "scorer")
    monkeypatch.setattr("concertino.plugins.manager.default_manager", lambda: manager)
    if policy == "scorer/sufficient":
        monkeypatch.setattr(published, "_SUFFICIENT", 0.55)

    async def run() -> object:
        async with ct.Executor() as executor:
            (seen,) = await executor.run([ct.Call("ask", {"question": QUESTION})], router_pool(policy))
            return seen.content

    assert asyncio.run(run()) == first


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"sufficent": 1}, "sufficent"), ({"sufficient": 1.5}, "a share of right answers, 0 to 1")],
)
def test_wrong_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ct.UsageError, match=message):
        published.concertino_rankings(ct.ProviderSettings(settings))
