"""A member as a plain async function, which is a tool of LlamaIndex."""

import asyncio

import concertino as ct
from calls import OURS, tell
from llama_index.core.tools import FunctionTool

bank: dict[str, float] = {}
tool = FunctionTool.from_defaults(async_fn=ct.as_function(OURS, "pay", deps=bank))
schema = tool.metadata.get_parameters_dict()
tell("schema", "amount", ",".join(schema["required"]), schema)


async def call() -> None:
    for arguments, expected in (({"amount": 3}, "OK"), ({"amount": "much"}, "PARSE_ERR"), ({"amout": 1}, "PARSE_ERR")):
        try:
            output = await tool.acall(**arguments)
            tell("pay", expected, "OK", output.raw_output)
        except ct.CallFailed as failed:
            tell("pay", expected, failed.observation.status.value, str(failed))


asyncio.run(call())
tell("deps", "{'Ada': 3.0}", str(bank), bank)
