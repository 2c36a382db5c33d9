"""A desk for returns, in concertino."""

import asyncio
from dataclasses import dataclass, field
from datetime import date as day

import concertino as ct
from pydantic import BaseModel


@dataclass
class Shop:
    orders: dict[int, dict[str, str | float]]
    paid: list[tuple[int, float]] = field(default_factory=list)


class Ruling(BaseModel):
    order: int
    amount: float
    reason: str


@ct.tool
def find_order(ctx: ct.Context[Shop], number: int) -> dict[str, str | float]:
    """Find an order by its number."""
    return ctx.deps.orders[number]


@ct.tool
def days_since(date: str) -> int:
    """Days from a date (YYYY-MM-DD) until today."""
    return (day(2026, 11, 28) - day.fromisoformat(date)).days


@ct.tool(approval=True)
def pay_back(ctx: ct.Context[Shop], order: int, amount: float) -> str:
    """Pay an amount back to the customer of an order."""
    ctx.deps.paid.append((order, amount))
    return f"paid back {amount}"


@ct.agent(models=("lawyer",))
async def ask_lawyer(ctx: ct.Context[Shop], question: str) -> str:
    """Ask a lawyer what a customer is owed."""
    messages = [ct.Message("system", "You know the law of sales. Answer in a sentence."), ct.Message("user", question)]
    return (await ctx.model("lawyer").chat(messages)).text


async def approve(request: ct.ApprovalRequest) -> bool:
    return await asyncio.to_thread(input, f"{request.name} {request.arguments}? ") == "yes"


async def main() -> None:
    shop = Shop({7: {"item": "mug", "price": 12.5, "delivered": "2026-11-20"}})
    pool = ct.Pool.of(find_order, days_since, pay_back, ask_lawyer, lawyer="openai/gpt-5.5")
    desk = ct.Orchestrator(
        "openai/gpt-5.4-mini", instructions="Rule as the shop would.", answer_type=Ruling, approve=approve
    )
    run = await desk.run(["Order 7 came like this. What do I get back?", ct.Image("mug.png")], pool=pool, deps=shop)
    print(repr(run.output))
    async for event in desk.stream("Please pay it back.", pool=pool, deps=shop, history=run):
        if isinstance(event, ct.events.TextDelta) and event.kind == "answer":
            print(event.text, end="", flush=True)
    print("\npaid", shop.paid)


asyncio.run(main())
