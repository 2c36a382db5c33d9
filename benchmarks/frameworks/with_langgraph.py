"""A desk for returns, in LangGraph with LangChain's agents."""

import asyncio
import base64
from dataclasses import dataclass, field
from datetime import date as day
from pathlib import Path

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.chat_models import init_chat_model
from langchain.tools import ToolRuntime, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
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
def find_order(number: int, runtime: ToolRuntime[Shop]) -> dict[str, str | float]:
    """Find an order by its number."""
    return runtime.context.orders[number]


@tool
def days_since(date: str) -> int:
    """Days from a date (YYYY-MM-DD) until today."""
    return (day(2026, 11, 28) - day.fromisoformat(date)).days


@tool
def pay_back(order: int, amount: float, runtime: ToolRuntime[Shop]) -> str:
    """Pay an amount back to the customer of an order."""
    runtime.context.paid.append((order, amount))
    return f"paid back {amount}"


@tool
async def ask_lawyer(question: str) -> str:
    """Ask a lawyer what a customer is owed."""
    messages = [("system", "You know the law of sales. Answer in a sentence."), ("user", question)]
    return (await lawyer.ainvoke(messages)).text


lawyer = init_chat_model("openai:gpt-5.5")
desk = create_agent(
    "openai:gpt-5.4-mini",
    tools=[find_order, days_since, pay_back, ask_lawyer],
    system_prompt="Rule as the shop would.",
    response_format=Ruling,
    context_schema=Shop,
    checkpointer=InMemorySaver(),
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"pay_back": {"allowed_decisions": ["approve", "reject"]}})],
)


async def main() -> None:
    shop = Shop({7: {"item": "mug", "price": 12.5, "delivered": "2026-11-20"}})
    thread = {"configurable": {"thread_id": "1"}}
    photo = base64.b64encode(Path("mug.png").read_bytes()).decode()
    content = [
        {"type": "text", "text": "Order 7 came like this. What do I get back?"},
        {"type": "image", "base64": photo, "mime_type": "image/png"},
    ]
    state = await desk.ainvoke({"messages": [{"role": "user", "content": content}]}, thread, context=shop)
    print(repr(state["structured_response"]))
    given = {"messages": [{"role": "user", "content": "Please pay it back."}]}
    while given is not None:
        run = await desk.astream_events(given, thread, context=shop, version="v3")
        async for message in run.messages:
            async for delta in message.text:
                print(delta, end="", flush=True)
        decisions = []
        for interrupt in await run.interrupts():
            for call in interrupt.value["action_requests"]:
                yes = await asyncio.to_thread(input, f"{call['name']} {call['args']}? ") == "yes"
                decisions.append({"type": "approve" if yes else "reject"})
        given = Command(resume={"decisions": decisions}) if decisions else None
    print("\npaid", shop.paid)


asyncio.run(main())
