"""In concertino what the programs beside this one do in other frameworks."""

# --8<-- [start:tool]
import asyncio
from dataclasses import dataclass

import concertino as ct
from pydantic import BaseModel


@ct.tool
def weather(city: str) -> str:
    """Say how warm it is in a city."""
    return {"Oslo": "4 degrees", "Rome": "18 degrees"}[city]


pool = ct.Pool.of(weather)
leader = ct.Orchestrator("openai/gpt-5.4-mini", instructions="Answer in one sentence.")
print(leader.run_sync("Is it warmer in Oslo or in Rome?", pool=pool).answer)
# --8<-- [end:tool]


# --8<-- [start:typed]
class Report(BaseModel):
    city: str
    celsius: float


reporter = ct.Orchestrator("openai/gpt-5.4-mini", answer_type=Report)
print(reporter.run_sync("How warm is it in Rome?", pool=pool).output)
# --8<-- [end:typed]


# --8<-- [start:conversation]
first = leader.run_sync("My name is Ada.", pool=pool)
print(leader.run_sync("What is my name?", pool=pool, history=first).answer)
# --8<-- [end:conversation]


# --8<-- [start:deps]
@dataclass
class User:
    name: str


@ct.tool
def user_name(ctx: ct.Context[User]) -> str:
    """The name of the user."""
    return ctx.deps.name


limits = ct.Budget(tokens=20_000, seconds=60, calls=10)  # usd=0.10, too, for a model with a known price
print(leader.run_sync("Greet me.", pool=ct.Pool.of(user_name), deps=User("Ada"), budget=limits).answer)
# --8<-- [end:deps]


# --8<-- [start:approval]
@ct.tool(approval=True)
def book(city: str, nights: int) -> str:
    """Book a hotel."""
    return f"booked {nights} nights in {city}"


async def decide(request: ct.ApprovalRequest) -> bool:
    print("may it", request.name, request.arguments)
    return True


hotel = ct.Pool.of(book)
clerk = ct.Orchestrator("openai/gpt-5.4-mini", approve=decide)
print(clerk.run_sync("Book two nights in Rome.", pool=hotel).answer)
# --8<-- [end:approval]


# --8<-- [start:later]
async def later() -> None:
    clerk = ct.Orchestrator("openai/gpt-5.4-mini")  # without `approve`, the run is suspended
    run = await clerk.run("Book two nights in Rome.", pool=hotel, trace="booking.jsonl")
    decisions = {call.call_id: ct.Approve() for call in run.pending}
    run = await clerk.resume("booking.jsonl", pool=hotel, decisions=decisions)  # in another process, too
    print(run.answer)


asyncio.run(later())
# --8<-- [end:later]


# --8<-- [start:streaming]
async def streaming() -> None:
    async for event in leader.stream("Tell me about Rome.", pool=pool):
        if isinstance(event, ct.events.TextDelta) and event.kind == "answer":
            print(event.text, end="", flush=True)
    print()


asyncio.run(streaming())
# --8<-- [end:streaming]


# --8<-- [start:another]
guide = ct.Orchestrator("guide_model", instructions="You know every city.").as_agent(
    "ask_guide", "Ask a guide what to see in a city.", only=["weather"]
)
pool = ct.Pool.of(weather, guide, guide_model="openai/gpt-5.5")
print(leader.run_sync("What should I see in Rome?", pool=pool).answer)
# --8<-- [end:another]
