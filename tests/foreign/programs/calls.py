"""Calls members of a pool and prints one line of JSON per observation."""

import asyncio
import json
import sys
from typing import Any

import concertino as ct


def show(pool: ct.Pool, *calls: tuple[str, dict[str, Any]], deps: Any = None) -> None:
    async def run() -> None:
        async with ct.Executor() as executor:
            for seen in await executor.run([ct.Call(*call) for call in calls], pool, deps=deps):
                sys.stdout.write(json.dumps([seen.name, seen.status.value, seen.content]) + "\n")

    asyncio.run(run())
