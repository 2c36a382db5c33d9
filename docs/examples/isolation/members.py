"""Three members that misbehave, each where it is harmless."""

import asyncio
import os
import time

import concertino as ct


@ct.tool(timeout=0.3)
async def waits(seconds: float) -> str:
    """Wait without using the processor: the caller's event loop is the right place."""
    await asyncio.sleep(seconds)
    return "done"


@ct.tool(isolation="thread", timeout=0.3)
async def blocks(seconds: float) -> str:
    """Block its event loop, as a client library without asyncio does: it has one of its own."""
    time.sleep(seconds)  # noqa: ASYNC251 - blocking is the point
    return "done"


@ct.tool(isolation="process", timeout=2)
def spins() -> None:
    """Compute for ever: only a process can be stopped."""
    while True:
        pass


@ct.tool(isolation="process", timeout=2)
def crashes() -> None:
    """End its interpreter, as a fault in compiled code does."""
    os._exit(11)
