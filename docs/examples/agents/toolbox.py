"""An agent with private tools."""

import asyncio

import concertino as ct
from concertino.testing import run_call


# --8<-- [start:agent]
@ct.tool
def fahrenheit(celsius: float) -> float:
    """Turn degrees Celsius into degrees Fahrenheit."""
    return celsius * 9 / 5 + 32


@ct.agent(toolbox=(fahrenheit,))
async def weather(celsius: list[float], ctx: ct.Context) -> str:
    """Report temperatures in Fahrenheit.

    Args:
        celsius: the measured degrees.
    """
    seen = await ctx.run([ct.Call("fahrenheit", {"celsius": value}) for value in celsius])
    return ", ".join(f"{one.content:g} F" for one in seen if one.ok)


# --8<-- [end:agent]
async def main() -> None:
    seen = await run_call(weather, {"celsius": [0, 100]})
    assert seen.content == "32 F, 212 F"
    assert seen.usage.calls == 3


asyncio.run(main())
