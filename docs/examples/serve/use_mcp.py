"""Use a served pool with the official client of MCP: python use_mcp.py http://127.0.0.1:8899/mcp"""

import asyncio
import sys

from mcp import Client

QUESTION = (
    "The number of each Cable Layer's Mail Sack equals each Mail Sack's Copper Coil. "
    "The number of each Mail Sack's Copper Coil equals 2. How many Mail Sack does Cable Layer have?"
)


async def show(done: float, total: float | None, message: str | None) -> None:
    print("progress:", message)


async def main(address: str) -> None:
    async with Client(address) as client:
        tools = (await client.list_tools()).tools
        print("tools:", ", ".join(tool.name for tool in tools))
        one = await client.call_tool("calculate", {"expression": "6*3"})
        print("calculate:", one.content[0].text)
        answer = await client.call_tool("ask", {"question": QUESTION}, progress_callback=show)
        print("answer:", answer.structured_content["answer"])


asyncio.run(main(sys.argv[1]))
