"""A member as a plain async function, which is a tool of DSPy."""

import asyncio

import concertino as ct
import dspy
from calls import OURS, tell

bank: dict[str, float] = {}
tool = dspy.Tool(ct.as_function(OURS, "pay", deps=bank))
tell("name", "pay", tool.name, tool.args)
tell("arguments", "amount,to", ",".join(tool.args), tool.args)


async def call() -> None:
    for arguments, expected in (({"amount": 3}, "OK"), ({"amount": -1, "to": "Bob"}, "OK")):
        tell("pay", expected, "OK" if await tool.acall(**arguments) else "", None)
    try:
        await ct.as_function(OURS, "pay", deps=bank)(amount="much")
    except ct.CallFailed as failed:
        tell("pay", "PARSE_ERR", failed.observation.status.value, str(failed))
    try:
        await tool.acall(amount="much")
    except (ValueError, ct.CallFailed) as error:  # DSPy has checks of its own
        tell("pay", "refused", "refused", str(error))


asyncio.run(call())
tell("deps", "{'Ada': 3.0, 'Bob': -1.0}", str(bank), bank)
