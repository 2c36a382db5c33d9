"""The `traceparent` of a request is known where its run begins, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import concertino as ct
import pytest
from concertino.core.caller import caller
from concertino_serve.serve_settings import McpOffer, Preset, ServeSettings

from .serving_here import Scripted, calls_then, served
from .serving_mcp import connected, text_of

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BODIES = {
    "chat/completions": {"messages": [{"role": "user", "content": "q"}]},
    "responses": {"input": "q"},
}


@pytest.mark.parametrize("route", BODIES)
async def test_a_run_knows_the_caller_of_its_own_request_alone(route: str, tmp_path: Path) -> None:
    seen: list[str] = []

    @ct.tool
    async def price(fruit: str) -> str:
        """Says who asks."""
        seen.append(caller())
        return "$4"

    lead = ct.ModelSpec("m/lead", lambda: Scripted(calls_then("four")))
    pool = ct.Pool.of(price, lead).bind(orchestrator="m/lead")
    settings = ServeSettings({"helper": Preset("helper", pool, strategy=ct.ParallelRounds())}, traces=tmp_path)
    async with served(settings) as here, here.client() as client:
        for headers in ({"traceparent": CALLER}, {}, {"traceparent": "00-other"}):
            await client.post(
                f"/{route}", cast_to=object, body={"model": "helper", **BODIES[route]}, options={"headers": headers}
            )
    assert seen == [CALLER, "", "00-other"]
    assert caller() == ""


async def test_a_call_over_mcp_is_in_the_trace_that_its_client_names(tmp_path: Path) -> None:
    api = pytest.importorskip("opentelemetry.trace", reason="opentelemetry-api is not installed")

    @ct.tool
    async def where() -> str:
        """Says in which trace it runs."""
        said = api.get_current_span().get_span_context()
        return f"{said.trace_id:032x}"

    pool = ct.Pool.of(where, ct.ModelSpec("m/lead", lambda: Scripted(calls_then("four")))).bind(orchestrator="m/lead")
    settings = ServeSettings({"helper": Preset("helper", pool)}, mcp=McpOffer(), traces=tmp_path)
    async with served(settings) as here, connected(here, "2026-07-28") as client:
        told = [text_of(await client.call_tool("where", {}, meta=meta)) for meta in ({"traceparent": CALLER}, {})]
    assert told[0] == CALLER[3:35]
    assert told[1] != CALLER[3:35]
