"""An application on one page: instructions, dependencies, a typed answer, a second question, text as it is written."""

import asyncio
from dataclasses import dataclass

import concertino as ct
from concertino.testing import ScriptedModel
from pydantic import BaseModel


@dataclass
class Bank:
    """What the tools work on. No model sees it and no trace keeps it."""

    balance: float


class Account(BaseModel):
    """What an answer must be."""

    owner: str
    balance: float


@ct.tool
async def balance(ctx: ct.Context[Bank]) -> float:
    """The balance of the account."""
    return ctx.deps.balance


@ct.tool(approval=True)
async def pay(ctx: ct.Context[Bank], amount: float, to: str) -> str:
    """Pay an amount to somebody."""
    ctx.deps.balance -= amount
    return f"paid {amount:g} to {to}"


# In place of "openai/gpt-5.4-mini", so that this program runs anywhere and always says the same.
MODEL = ScriptedModel(
    [("balance", {})],
    "<answer>Ada has 90.</answer>",
    '{"owner": "Ada", "balance": 90}',
    [("pay", {"amount": 30, "to": "Bob"})],
    '<answer>{"owner": "Ada", "balance": 60}</answer>',
)


async def approve(request: ct.ApprovalRequest) -> ct.Approve | ct.Deny:
    """A person decides; a web page, a chat, a terminal. It may take days."""
    print("approve", request.name, request.arguments)
    return ct.Approve() if request.arguments["amount"] < 50 else ct.Deny("too much")


async def main() -> None:
    leader = ct.Orchestrator(
        MODEL,
        instructions=lambda ctx: f"The account belongs to Ada. Its bank has {ctx.deps.balance:g}.",
        answer_type=Account,
        approve=approve,
    )
    pool, bank = ct.Pool.of(balance, pay), Bank(90)

    run = await leader.run("How much is there?", pool=pool, deps=bank)
    print(run.output)

    async for event in leader.stream("Pay Bob 30. How much is left?", pool=pool, deps=bank, history=run):
        if isinstance(event, ct.events.TextDelta) and event.kind == "answer":
            print(event.text, end="")
        elif isinstance(event, ct.Run):
            print("", event.output, bank, sep="\n")


asyncio.run(main())
