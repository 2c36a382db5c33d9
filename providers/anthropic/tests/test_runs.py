"""Whole runs: a Claude model leads, through the executor, with calls, thoughts, typed answers, streams and a bill."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import concertino as ct
import pytest
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino_anthropic import model
from concertino_anthropic.schema import sayable
from pydantic import BaseModel

from .stand_in import StandIn, Turn, call, stand_in, text, thinking

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
PRICES = ct.Prices(4.0, 20.0, 0.2, cache_write=5.0)


@ct.tool
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


class Sum(BaseModel):
    value: int


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    async with stand_in() as server:
        yield server
        assert server.refused == []


def claude(server: StandIn, **options: Any) -> ct.ModelSpec:
    return model("claude-opus-5-5", base_url=server.address, key_env="ANTHROPIC_API_KEY", prices=PRICES, **options)


def twice(_: Mapping[str, Any]) -> Turn:
    calls = [call("add", {"a": 2, "b": 3}, "toolu_1"), call("add", {"a": "two", "b": 3}, "toolu_2")]
    return Turn([thinking("Two sums."), text("I add."), *calls], "tool_use")


async def test_a_run_calls_natively_sees_statuses_and_answers_with_its_thoughts_kept(server: StandIn) -> None:
    final = Turn([thinking("Done."), call("final_answer", {}, "toolu_3")], "tool_use")
    server.script = [twice, final, Turn([text("<answer>5</answer>")])]
    leader = ct.Orchestrator(claude(server), strategy=ParallelRounds(native=True))
    run = await leader.run("What is 2 + 3?", pool=ct.Pool.of(add), budget=ct.Budget(usd=3.0))
    assert run.answer == "5"
    assert [str(seen.status) for seen in run.observations] == ["OK", "PARSE_ERR"]
    kinds = [block["type"] for block in server.bodies[1]["messages"][1]["content"]]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    assert run.usage.usd > 0
    assert run.usage.unpriced == 0
    assert run.usage.cache_write_tokens > 0


async def test_a_run_in_text_calls_too(server: StandIn) -> None:
    said = 'I add.\n<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
    server.script = [
        Turn([thinking("A sum."), text(said)]),
        Turn([text('<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>')]),
        Turn([text("<answer>5</answer>")]),
    ]
    run = await ct.Orchestrator(claude(server)).run("What is 2 + 3?", pool=ct.Pool.of(add))
    assert run.answer == "5"
    assert server.bodies[1]["messages"][1]["content"][0]["type"] == "thinking"


async def test_an_answer_is_of_its_type(server: StandIn) -> None:
    server.script = [Turn([text("<answer>five</answer>")]), Turn([text('{"value": 5}')])]
    run = await ct.Orchestrator(claude(server), answer_type=Sum).run("What is 2 + 3?", pool=ct.Pool.of(add))
    assert run.output == Sum(value=5)


async def test_the_api_enforces_the_schema_that_an_agent_asks_with(server: StandIn) -> None:
    @ct.agent
    async def adder(question: str, *, ctx: ct.Context) -> int:
        """Adds."""
        reply = await ctx.model("default").chat(question, schema=Sum.model_json_schema())
        value: int = reply.data["value"]
        return value

    server.script = [Turn([text('{"value": 5}')])]
    pool = ct.Pool.of(adder, claude(server), default="claude-opus-5-5")
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("adder", {"question": "2 + 3"})], pool)
    assert (str(seen.status), seen.content) == ("OK", 5)
    schema = {"type": "json_schema", "schema": sayable(Sum.model_json_schema())}
    assert server.bodies[0]["output_config"] == {"format": schema}


async def test_text_and_thoughts_are_heard_as_they_are_written(server: StandIn) -> None:
    server.script = [Turn([thinking("It is a cat."), text("<answer>A cat.</answer>")])]
    server.seed = 1
    heard: dict[str, str] = {}
    leader = ct.Orchestrator(claude(server))
    async for event in leader.stream(["What is this?", ct.Image(PNG, name="cat.png")], pool=ct.Pool.of(add)):
        if isinstance(event, ct.events.TextDelta):
            heard[event.kind] = heard.get(event.kind, "") + event.text
    assert heard["reasoning"] == "It is a cat."
    assert heard["answer"] == "A cat."
    (image, *_) = server.bodies[0]["messages"][0]["content"]
    assert (image["type"], image["source"]["media_type"]) == ("image", "image/png")


async def test_a_sound_is_refused_before_anything_is_paid(server: StandIn) -> None:
    sound = ct.Audio(b"ID3" + b"0" * 9, name="song.mp3")
    with pytest.raises(ct.UsageError, match="takes no audio; it takes text, image, file"):
        await ct.Orchestrator(claude(server)).run(["What is this?", sound], pool=ct.Pool.of(add))
    assert server.bodies == []


async def test_a_request_that_is_declined_ends_the_run_with_its_reason(server: StandIn) -> None:
    server.script = [Turn([], "refusal", {"type": "refusal", "category": "bio", "explanation": "No."})]
    run = await ct.Orchestrator(claude(server)).run("?", pool=ct.Pool.of(add))
    assert run.answer is None
    assert "declined the request (bio): No." in str(run.detail)


async def test_a_router_asks_its_next_model_where_one_declines(server: StandIn) -> None:
    server.script = [Turn([], "refusal"), Turn([text("<answer>yes</answer>")])]
    first, second = claude(server), model("claude-haiku-5-5", base_url=server.address, key_env="ANTHROPIC_API_KEY")
    router = ct.router("both", first.name, second.name)
    run = await ct.Orchestrator("both").run("?", pool=ct.Pool.of(add, first, second, router))
    assert run.answer == "yes"
    assert [body["model"] for body in server.bodies] == ["claude-opus-5-5", "claude-haiku-5-5"]
