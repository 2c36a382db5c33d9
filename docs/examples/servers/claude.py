"""A Claude model, asked by an agent about a picture; the server of this example is in this process."""

import asyncio
import json

import concertino as ct
import concertino_anthropic
from aiohttp import web

DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)


@ct.agent(models=("worker",))
async def describe(question: str, *, ctx: ct.Context) -> str:
    """Describe a picture."""
    reply = await ctx.model("worker").chat([ct.Message("user", question, attachments=(ct.Image(DOT),))])
    print("thought:", reply.reasoning)
    return reply.text


async def main(url: str) -> None:
    # Without base_url it is Anthropic's server, with the key of ANTHROPIC_API_KEY and the prices of its table.
    claude = concertino_anthropic.model("claude", model="claude-haiku-5-5", effort="low", base_url=url)
    pool = ct.Pool.of(describe, claude, worker="claude").price({"claude": ct.Prices(0.1, 0.5, cached=0.01)})
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("describe", {"question": "What colour is it?"})], pool)
    print(seen.status, seen.content, seen.usage.tokens, "tokens", f"${seen.usage.usd:.8f}")


async def with_server() -> None:
    usage = {"input_tokens": 40, "output_tokens": 1}
    events = [
        {"type": "message_start", "message": {"id": "msg_1", "model": "claude-haiku-5-5", "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "One red pixel."}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Red."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 12}},
        {"type": "message_stop"},
    ]

    async def messages(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return response

    app = web.Application()
    app.router.add_post("/v1/messages", messages)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    await main(f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}")
    await runner.cleanup()


asyncio.run(with_server())
