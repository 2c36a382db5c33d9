"""The `traceparent` of a request is known where its run begins, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import concertino as ct
import pytest
from concertino.core.caller import caller
from concertino_serve.serve_settings import Preset, ServeSettings

from .serving_here import Scripted, calls_then, served

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
