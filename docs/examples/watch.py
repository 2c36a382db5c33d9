"""Follow a run live."""

import asyncio

import concertino as ct
from concertino.testing import ScriptedModel


@ct.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def orchestrator() -> ct.Orchestrator:
    return ct.Orchestrator(
        ScriptedModel(
            [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": "four"})],
            [("final_answer", {})],
            "<answer>3</answer>",
        )
    )


async def main() -> None:
    pool = ct.Pool.of(add)

    # As a loop: every event, and the finished run at the end.
    async for event in orchestrator().stream("What is 1 + 2?", pool=pool):
        if isinstance(event, ct.Run):
            print("answer:", event.answer)
        elif (record := event.to_json())["t"] == "result":
            print(record["id"], record["name"], record["status"])

    # As a callback: the same events. It runs on the event loop, so it must be quick.
    kinds: list[str] = []
    await orchestrator().run("What is 1 + 2?", pool=pool, on_event=lambda event: kinds.append(event.to_json()["t"]))
    print(" ".join(kinds))


asyncio.run(main())
