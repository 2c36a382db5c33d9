"""An agent that uses a tool and a model, returns partial results when its budget ends, and explains failures."""

import asyncio
from typing import Annotated

import concertino as ct
from concertino.testing import ScriptedModel, fake_tool, make_pool, run_call
from pydantic import Field


@ct.agent(cost=ct.Cost(units=2), timeout=60, models=("judge",))
async def fact_check(
    claims: Annotated[list[str], Field(min_length=1, max_length=8)], ctx: ct.Context
) -> dict[str, str]:
    """Check claims against a search, side by side; give each a verdict.

    Args:
        claims: one statement each, complete in itself.
    """
    found = await ctx.run([ct.Call("search", {"query": claim}) for claim in claims])
    known = {claim: seen.content for claim, seen in zip(claims, found, strict=True) if seen.ok}
    if not known:
        raise ct.CallFailed.because("no search came back; try fewer claims", code="nothing_found", retryable=True)
    verdicts: dict[str, str] = {}
    for claim, evidence in known.items():
        try:
            reply = await ctx.model("judge").chat(f"Claim: {claim}\nEvidence: {evidence}\nTrue or false?")
        except ct.CallFailed as error:
            if not verdicts:
                raise  # the cause, such as budget_exhausted, is this call's error
            verdicts["unchecked"] = str(error)
            break
        verdicts[claim] = reply.text
    return verdicts


async def main() -> None:
    search = fake_tool("search", returns="Oslo is the capital of Norway.")
    pool = make_pool(search, judge=ScriptedModel("true", "false"))
    arguments = {"claims": ["Oslo is a capital.", "Oslo is in Sweden."]}
    seen = await run_call(fact_check, arguments, pool=pool)
    print(seen.status, seen.content)

    pool = make_pool(search, judge=ScriptedModel("true", strict=False))
    seen = await run_call(fact_check, arguments, pool=pool, budget=ct.Budget(tokens=60))
    print(seen.status, seen.content)

    pool = make_pool(fake_tool("search", raises=ValueError("no network")), judge=ScriptedModel(strict=False))
    seen = await run_call(fact_check, arguments, pool=pool)
    assert seen.error is not None
    print(seen.status, seen.error.code, seen.error.message)


asyncio.run(main())
