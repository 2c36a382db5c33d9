"""An agent whose results have a type, and that asks its model for a value of it."""

import asyncio

import concertino as ct
from concertino.testing import ScriptedModel
from pydantic import BaseModel


class Weather(BaseModel):
    city: str
    celsius: float


@ct.agent(models=("worker",))
async def read_weather(report: str, *, ctx: ct.Context) -> list[Weather]:
    """Read the weather of cities in a report."""
    reply = await ctx.model("worker").chat(f"Which weather is in this report?\n{report}", schema=list[Weather])
    return reply.data  # a list of Weather


async def main() -> None:
    worker = ct.ModelSpec("worker", lambda: ScriptedModel('[{"city": "Oslo", "celsius": -3}]', '[{"city": "Rome"}]'))
    async with ct.Executor() as executor:
        for _ in range(2):
            (seen,) = await executor.run([ct.Call("read_weather", {"report": "…"})], ct.Pool.of(read_weather, worker))
            print(seen.status, seen.content if seen.ok else seen.error and seen.error.message)


asyncio.run(main())
