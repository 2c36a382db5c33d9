"""A graph of fixed calls in concertino: two at the same time, then one that needs both."""

import asyncio

import concertino as ct


@ct.tool
def degrees(city: str) -> int:
    """Say how warm it is in a city, in degrees."""
    return {"Oslo": 4, "Rome": 18}[city]


@ct.tool
def warmer(oslo: int, rome: int) -> str:
    """Say which of two cities is warmer."""
    return f"warmer in {'Oslo' if oslo > rome else 'Rome'}"


async def main() -> None:
    plan = ct.Plan(
        [
            ct.Call("degrees", {"city": "Oslo"}, "oslo"),
            ct.Call("degrees", {"city": "Rome"}, "rome"),
            ct.Call("warmer", {"oslo": ct.Ref("oslo"), "rome": ct.Ref("rome")}, "warmer"),
        ]
    )
    async with ct.Executor() as executor:
        seen = await executor.run(plan, ct.Pool.of(degrees, warmer))
    print(seen[-1].content)


asyncio.run(main())
