"""Everything on this page in a few lines, with a model behind a server: OpenAI's, or one that OPENAI_BASE_URL names."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import concertino as ct
from pydantic import BaseModel

Path("cat.png").write_bytes(b"\x89PNG\r\n\x1a\n...")
Path("report.pdf").write_bytes(b"%PDF-1.7 ...")


@dataclass
class Bank:
    city: str
    balance: float


@ct.tool
def place(ctx: ct.Context[Bank]) -> str:
    """The city of the bank."""
    return ctx.deps.city


@ct.tool
def thermometer(city: str, day: str = "today") -> float:
    """The temperature in a city, in degrees Celsius."""
    return {"today": 4.5, "tomorrow": 2.0}[day]


# --8<-- [start:pay]
@ct.tool(approval=True)
async def pay(ctx: ct.Context[Bank], amount: float) -> str:
    """Pay an amount."""
    ctx.deps.balance -= amount
    return f"{ctx.deps.balance:g} is left"


# --8<-- [end:pay]


async def main() -> None:
    pool, db = ct.Pool.of(place, thermometer), Bank("Oslo", 100)

    # --8<-- [start:block]
    class Answer(BaseModel):
        city: str
        celsius: float

    leader = ct.Orchestrator("openai/gpt-5.4-mini", instructions="Answer in French.", answer_type=Answer)
    run = await leader.run("How warm is it there?", pool=pool, deps=db)
    print(run.output)  # an Answer, validated; run.answer stays the text

    more = await leader.run("And tomorrow?", pool=pool, history=run)
    print(more.output)

    async for event in leader.stream(["What is this?", ct.Image("cat.png"), ct.File("report.pdf")], pool=pool):
        if isinstance(event, ct.events.TextDelta) and event.kind == "answer":
            print(event.text, end="")
    # --8<-- [end:block]
    print()

    # --8<-- [start:paid]
    cashier = ct.Orchestrator("openai/gpt-5.4-mini", approve=lambda request: request.arguments["amount"] < 50)
    paid = await cashier.run("Pay 30, then 300.", pool=ct.Pool.of(pay), deps=db)
    print([str(seen.status) for seen in paid.observations], db.balance)
    # --8<-- [end:paid]


asyncio.run(main())
