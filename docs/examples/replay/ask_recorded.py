"""A pool of recorded models: its members, a reply with its price, and a question that was not recorded."""

import asyncio

import concertino as ct

TRAIN = "A train needs 3 hours for 390 km. How fast is it in km/h?"


async def main() -> None:
    pool = ct.Pool.load("pool.toml")
    for model in pool.models:
        print(model.name, "-", model.description)
    calls = [ct.Call(name, {"task": f"Answer briefly.\n\n{TRAIN}"}) for name in ("ask_small", "ask_large")]
    calls.append(ct.Call("ask_small", {"task": "How slow is the train?"}))
    async with ct.Executor() as executor:
        for seen in await executor.run(calls, pool):
            print(seen.status, seen.content or seen.error.message, f"${seen.usage.usd:.6f}")


asyncio.run(main())
