"""A model behind an OpenAI-compatible server, asked by an agent; the server of this example is in this process."""

import asyncio
import json

import concertino as ct
import concertino_openai
from aiohttp import web

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@ct.agent(models=("worker",))
async def capital(country: str, *, ctx: ct.Context) -> str:
    """Name the capital of a country."""
    reply = await ctx.model("worker").chat(f"The capital of {country}, as JSON.", schema=SCHEMA)
    return reply.data["city"]


async def main(url: str) -> None:
    worker = concertino_openai.model("quick", server="vllm", model="tiny", base_url=url)
    pool = ct.Pool.of(capital, worker, worker=worker.name).price({worker.name: ct.Prices(input=0.05, output=0.15)})
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("capital", {"country": "Norway"})], pool)
    print(seen.status, seen.content, seen.usage.tokens, "tokens", f"${seen.usage.usd:.8f}")


async def with_server() -> None:
    async def complete(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in ('{"city": ', '"Oslo"}'):
            chunk = {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        usage = {"prompt_tokens": 20, "completion_tokens": 8}
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
        await response.write(b"data: " + json.dumps(last).encode() + b"\n\ndata: [DONE]\n\n")
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    await main(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1")
    await runner.cleanup()


asyncio.run(with_server())
