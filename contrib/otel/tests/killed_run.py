"""The run that a test kills, and the process that resumes it: `killed_run.py STRATEGY FOLDER begin|resume`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import concertino as ct
from five_strategies import leader_of, pool_of, turns_of


async def main(name: str, folder: Path, what: str) -> None:
    """Begin a run whose agent never comes back, or resume it with one that does."""
    if what == "begin":
        await leader_of(name).run("q", pool=pool_of(hangs=True), trace=folder)
        return
    [path] = ct.TraceStore(folder).paths()
    replies = len(ct.Trace.load(path).replies())
    await leader_of(name, turns=turns_of(name)[replies:]).resume(path, pool=pool_of())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
