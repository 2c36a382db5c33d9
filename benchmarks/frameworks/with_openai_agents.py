"""A desk for returns, in the OpenAI Agents SDK."""

import asyncio
import base64
from dataclasses import dataclass, field
from datetime import date as day
from pathlib import Path

from agents import Agent, RunContextWrapper, Runner
from agents.decorators import tool
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel


@dataclass
class Shop:
    orders: dict[int, dict[str, str | float]]
    paid: list[tuple[int, float]] = field(default_factory=list)


class Ruling(BaseModel):
    order: int
    amount: float
    reason: str


@tool
def find_order(ctx: RunContextWrapper[Shop], number: int) -> dict[str, str | float]:
    """Find an order by its number."""
    return ctx.context.orders[number]


@tool
def days_since(date: str) -> int:
    """Days from a date (YYYY-MM-DD) until today."""
    return (day(2026, 11, 28) - day.fromisoformat(date)).days


@tool(needs_approval=True)
def pay_back(ctx: RunContextWrapper[Shop], order: int, amount: float) -> str:
    """Pay an amount back to the customer of an order."""
    ctx.context.paid.append((order, amount))
    return f"paid back {amount}"


lawyer = Agent(name="Lawyer", instructions="You know the law of sales. Answer in a sentence.", model="gpt-5.5")
desk = Agent(
    name="Desk",
    instructions="Rule as the shop would.",
    model="gpt-5.4-mini",
    output_type=Ruling,
    tools=[
        find_order,
        days_since,
        pay_back,
        lawyer.as_tool("ask_lawyer", "Ask a lawyer what a customer is owed."),
    ],
)


async def main() -> None:
    shop = Shop({7: {"item": "mug", "price": 12.5, "delivered": "2026-11-20"}})
    photo = f"data:image/png;base64,{base64.b64encode(Path('mug.png').read_bytes()).decode()}"
    content = [
        {"type": "input_text", "text": "Order 7 came like this. What do I get back?"},
        {"type": "input_image", "image_url": photo},
    ]
    result = await Runner.run(desk, [{"role": "user", "content": content}], context=shop)
    print(repr(result.final_output))
    question = [*result.to_input_list(), {"role": "user", "content": "Please pay it back."}]
    while True:
        streamed = Runner.run_streamed(desk, question, context=shop)
        async for event in streamed.stream_events():
            if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
                print(event.data.delta, end="", flush=True)
        if not streamed.interruptions:
            break
        question = streamed.to_state()
        for call in streamed.interruptions:
            if await asyncio.to_thread(input, f"{call.name} {call.arguments}? ") == "yes":
                question.approve(call)
            else:
                question.reject(call)
    print("\npaid", shop.paid)


asyncio.run(main())
