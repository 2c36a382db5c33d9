"""Runs by id: one part of a program starts them; others follow, cancel and resume them."""

import asyncio
import tempfile
from pathlib import Path

import concertino as ct
from concertino.testing import ScriptedModel

SECONDS = [0.0, 3600.0]


@ct.tool(timeout=None, retry_safe=True)
async def work(part: int) -> str:
    """Do a part of the work."""
    await asyncio.sleep(SECONDS[part])
    return f"part {part} is done"


POOL = ct.Pool.of(work)
LAST = "<answer>All done.</answer>"


async def main(folder: Path) -> None:
    runs = ct.Runs(folder)  # another process with this folder knows the same runs
    leader = ct.Orchestrator(ScriptedModel([("work", {"part": 0}), ("work", {"part": 1})], LAST))
    runs.start(leader, "Do the work.", pool=POOL, run_id="monday")  # returns at once

    async for record in runs.follow("monday"):  # from its beginning, then live
        print(record["n"], record["t"], record.get("name", ""))
        if record["t"] == "result":
            break
    print([(info.id, info.state) for info in runs.list()])

    info = await runs.cancel("monday")  # whichever process runs it
    print(info.state, "-", info.stop)

    SECONDS[1] = 0.0
    handle = await runs.resume("monday", ct.Orchestrator(ScriptedModel(LAST)), pool=POOL)
    run = await handle
    print(run.answer, [seen.content for seen in run.observations])


with tempfile.TemporaryDirectory() as name:
    asyncio.run(main(Path(name)))
