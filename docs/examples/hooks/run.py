"""An application passes hooks as they are; a plugin publishes them with `@ct.hookimpl`."""

import asyncio

import concertino as ct
from around_calls import CACHE, answer_from_cache, keep_the_quota, redact


@ct.tool
async def read_order(number: int) -> str:
    """Read an order."""
    return f"order {number}, paid with 4111 1111 1111 1111"


@ct.tool(writes=True)
async def send_mail(to: str) -> str:
    """Send a mail."""
    return "sent"


async def main() -> None:
    pool = ct.Pool.of(read_order, send_mail)
    CACHE["read_order", '{"number": 8}'] = ct.Observation("", "read_order", ct.Status.OK, "order 8, from the cache")
    calls = [
        ct.Call("read_order", {"number": 7}),
        ct.Call("read_order", {"number": 8}),
        ct.Call("send_mail", {"to": "Ada"}),
        ct.Call("send_mail", {"to": "everybody"}),
    ]
    async with ct.Executor() as executor:
        hooks = {"before": [answer_from_cache, keep_the_quota], "after": [redact]}
        for seen in await executor.run(calls, pool, **hooks):
            print(seen.status, seen.content or seen.error.message, "(replayed)" if seen.replayed else "")


asyncio.run(main())
