"""Costs of members, prices of models, and what a call really used."""

import asyncio

import concertino as ct
from concertino.testing import make_pool, run_call


@ct.tool(cost=ct.Cost(usd=0.002))
def search(query: str) -> list[str]:
    """Search the web; the provider bills each query."""
    return [f"a page about {query}"]


@ct.tool(cost=ct.Cost(max_usd=0.05))
def transcribe(minutes: int) -> ct.Result:
    """Transcribe a recording; the provider says afterwards what it billed."""
    return ct.Result(f"{minutes} minutes of speech", usd=0.006 * minutes)


@ct.agent(cost=ct.Cost(units=1), models=("worker",))
async def answer(question: str, *, ctx: ct.Context) -> str:
    """Answer a question with the worker model."""
    return (await ctx.model("worker").chat(question)).text


class Worker(ct.Model):
    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return ct.Reply("42", usage=ct.Usage(input_tokens=900, output_tokens=100))


async def main() -> None:
    pool = make_pool(search, transcribe, answer, worker=Worker())
    pool = pool.price({"model-worker": ct.Prices(input=0.25, output=2.00, as_of="2026-01-15")})
    for member, arguments in (
        (search, {"query": "fjords"}),
        (transcribe, {"minutes": 3}),
        (answer, {"question": "6 × 7?"}),
    ):
        used = (await run_call(member, arguments, pool=pool)).usage
        print(f"{member.name:<10} ${used.usd:.6f}  {used.units:g} units  {used.tokens} tokens")


asyncio.run(main())
