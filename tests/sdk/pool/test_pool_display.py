"""A pool in a notebook: members by kind, what the orchestrator calls them, what they cost."""

from __future__ import annotations

import concertino as ct
from concertino.core.html import MOST_CHARACTERS
from concertino.testing.hostile_texts import HOSTILE_TEXTS


@ct.tool(cost=ct.Cost(units=1, usd=0.002))
def look(text: str) -> str:
    """Look something up."""
    return text


@ct.agent(cost=ct.Cost(units=2))
async def think(text: str) -> str:
    """Think about it."""
    return text


CHEAP = ct.ModelSpec("acme/cheap", ct.Model, "Cheap & quick.", ct.Prices(0.25, 2.0, as_of="2026-11-01"))
UNKNOWN = ct.ModelSpec("acme/unknown", ct.Model, "Nobody knows its price.")


def test_a_pool_shows_its_members_by_kind_with_aliases_costs_and_descriptions() -> None:
    shown = ct.Pool.of(look, think, CHEAP, UNKNOWN, orchestrator="acme/cheap").alias({"look": "tool_1"})._repr_html_()
    for part in ("1 tool<", "1 agent<", "2 models<", "Look something up.", "Think about it.", "1 u + $0.0020", "2 u"):
        assert part in shown, part
    assert 'tool_1 <span class="dim">(alias)</span>' in shown
    assert "0.25 / 2" in shown
    assert "(2026-11-01)" in shown
    assert "unknown" in shown
    assert "Cheap &amp; quick." in shown
    assert "orchestrator = acme/cheap" in shown


def test_descriptions_are_escaped_and_cut() -> None:
    for hostile in HOSTILE_TEXTS:
        tool = ct.ToolSpec.from_schema("t", f"</td><script>{hostile}", {"type": "object"}, lambda arguments: "")
        shown = ct.Pool.of(tool)._repr_html_()
        assert "<script" not in shown
        assert len(shown) < 10_000
        shown.encode()


def test_a_pool_of_thousands_is_cut_and_says_so() -> None:
    tools = [look.with_(name=f"look_{n}", description="<" * 400) for n in range(3000)]
    shown = ct.Pool.of(*tools)._repr_html_()
    assert "3,000 tools" in shown
    assert "and 2,940 more" in shown
    assert len(shown) < 2 * MOST_CHARACTERS


def test_the_current_pool_of_a_service_is_shown() -> None:
    pool = ct.Pool.of(look)
    assert ct.LivePool(pool)._repr_html_() == pool._repr_html_()
