"""Structured replies: whatever a server promised, the executor checks the value against the schema of the request."""

from __future__ import annotations

from typing import Any

import concertino as ct
import pytest
from concertino.testing import ScriptedModel

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
}
SERVED = ct.Usage(input_tokens=10, output_tokens=5)


async def ask(reply: ct.Reply, schema: Any = SCHEMA) -> ct.Observation:
    @ct.agent
    async def clerk(*, ctx: ct.Context) -> dict[str, Any]:
        """Look something up."""
        answered = await ctx.model("default").chat("Which city?", schema=schema)
        return {"data": answered.data, "text": answered.text}

    prices = ct.Prices(input=1.0, output=2.0)
    model = ct.ModelSpec("m", lambda: ScriptedModel(reply), prices=prices)
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("clerk")], ct.Pool.of(clerk, model))
    return seen


@pytest.mark.parametrize(
    "text",
    ['{"city": "Oslo", "people": 7}', '```json\n{"city": "Oslo", "people": 7}\n```', ' {"city":"Oslo","people":7,} '],
)
async def test_a_reply_that_satisfies_the_schema_gives_its_value(text: str) -> None:
    seen = await ask(ct.Reply(text, usage=SERVED))
    assert (seen.status, seen.content) == ("OK", {"data": {"city": "Oslo", "people": 7}, "text": text})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"city": "Oslo", "people": "seven"}', "people"),
        ('{"city": "Oslo"}', "people"),
        ("Oslo, I think.", "JSON"),
    ],
)
async def test_a_reply_that_breaks_the_schema_is_a_bad_reply_and_is_paid_for(text: str, said: str) -> None:
    seen = await ask(ct.Reply(text, usage=SERVED))
    assert seen.error is not None
    assert (seen.status, seen.error.code) == ("EXEC_ERR", "bad_reply")
    assert said in seen.error.message
    assert seen.usage.tokens == 15
    assert seen.usage.usd == pytest.approx(20e-6)


async def test_a_schema_that_cannot_be_used_is_the_caller_s_mistake() -> None:
    seen = await ask(ct.Reply("{}", usage=SERVED), {"type": "no such type"})
    assert seen.error is not None
    assert (seen.status, seen.error.code) == ("EXEC_ERR", "rejected")


def test_tools_and_a_schema_together_are_refused_before_anything_is_sent() -> None:
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    with pytest.raises(ct.UsageError, match="either tools or a schema"):
        ct.ChatRequest([ct.Message("user", "?")], [tool], schema=SCHEMA)
