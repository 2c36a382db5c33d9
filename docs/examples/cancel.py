"""Start a run, stop it, and keep what was done."""

import asyncio

import concertino as ct
from concertino.testing import ScriptedModel, fake_tool, hanging_tool


async def main() -> None:
    pool = ct.Pool.of(fake_tool("quick", returns="done"), hanging_tool("slow"))
    model = ScriptedModel([("quick", {}), ("slow", {})])
    handle = ct.Orchestrator(model).start("Do both.", pool=pool)

    await asyncio.sleep(0.2)
    run = await handle.cancel()
    print(run.stop, [(seen.name, seen.status.value, seen.error and seen.error.code) for seen in run.observations])


asyncio.run(main())
