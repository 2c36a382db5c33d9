"""A desk for returns, in Pydantic AI."""

import asyncio
from dataclasses import dataclass, field
from datetime import date as day
from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults, NativeOutput, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta


@dataclass
class Shop:
    orders: dict[int, dict[str, str | float]]
    paid: list[tuple[int, float]] = field(default_factory=list)


class Ruling(BaseModel):
    order: int
    amount: float
    reason: str


async def approve(ctx: RunContext[Shop], requests: DeferredToolRequests) -> DeferredToolResults:
    asked = {call.tool_call_id: f"{call.tool_name} {call.args}? " for call in requests.approvals}
    return requests.build_results(
        approvals={key: await asyncio.to_thread(input, text) == "yes" for key, text in asked.items()}
    )


lawyer = Agent("openai:gpt-5.5", instructions="You know the law of sales. Answer in a sentence.")
desk = Agent(
    "openai:gpt-5.4-mini",
    deps_type=Shop,
    output_type=NativeOutput(Ruling),
    instructions="Rule as the shop would.",
    capabilities=[HandleDeferredToolCalls(approve)],
)


@desk.tool
def find_order(ctx: RunContext[Shop], number: int) -> dict[str, str | float]:
    """Find an order by its number."""
    return ctx.deps.orders[number]


@desk.tool_plain
def days_since(date: str) -> int:
    """Days from a date (YYYY-MM-DD) until today."""
    return (day(2026, 11, 28) - day.fromisoformat(date)).days


@desk.tool(requires_approval=True)
def pay_back(ctx: RunContext[Shop], order: int, amount: float) -> str:
    """Pay an amount back to the customer of an order."""
    ctx.deps.paid.append((order, amount))
    return f"paid back {amount}"


@desk.tool
async def ask_lawyer(ctx: RunContext[Shop], question: str) -> str:
    """Ask a lawyer what a customer is owed."""
    return (await lawyer.run(question, usage=ctx.usage)).output


async def main() -> None:
    shop = Shop({7: {"item": "mug", "price": 12.5, "delivered": "2026-11-20"}})
    question = ["Order 7 came like this. What do I get back?", BinaryContent.from_path(Path("mug.png"))]
    result = await desk.run(question, deps=shop)
    print(repr(result.output))
    async with desk.run_stream_events("Please pay it back.", deps=shop, conversation=result.conversation) as events:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                print(event.part.content, end="", flush=True)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                print(event.delta.content_delta, end="", flush=True)
    print("\npaid", shop.paid)


asyncio.run(main())
