"""Print an answer while it is written: python first_stream.py [MODEL [QUESTION]]."""

import asyncio
import sys

import concertino as ct


@ct.tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


async def main(model: str = "openai/gpt-5.4-mini", question: str = "What is 17 plus 25?") -> None:
    async for event in ct.Orchestrator(model).stream(question, pool=ct.Pool.of(add)):
        if isinstance(event, ct.events.TextDelta) and event.kind == "answer":
            print(event.text, end="", flush=True)
        elif isinstance(event, ct.Run):
            print("" if event.ok else event.detail)


asyncio.run(main(*sys.argv[1:]))
