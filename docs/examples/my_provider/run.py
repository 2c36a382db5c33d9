"""The provider at work, declared as a pool file would, against a server in this process that is busy at first."""

import asyncio

import concertino as ct
import concertino_mine
from aiohttp import web
from concertino.plugins import PluginManager


async def complete(request: web.Request) -> web.Response:
    request.app["asked"].append(await request.json())
    if len(request.app["asked"]) == 1:
        return web.Response(status=429, headers={"Retry-After": "0.1"}, text="busy")
    choice = {"message": {"content": "Oslo"}, "finish_reason": "stop"}
    return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 12, "completion_tokens": 1}})


@ct.agent(models=("worker",))
async def answer(question: str, *, ctx: ct.Context) -> str:
    """Answer a question."""
    return (await ctx.model("worker").chat(question)).text


async def main() -> None:
    app = web.Application()
    app["asked"] = []
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]

    manager = PluginManager(installed=False)
    manager.register(concertino_mine, "mine")
    model = manager.declare("mine/quick", {"url": f"http://127.0.0.1:{port}/v1/chat/completions"})
    pool = ct.Pool.of(answer, model, worker=model.name).price({model.name: ct.Prices(0.10, 0.40)})
    events: list[dict] = []
    async with ct.Executor() as executor:
        call = ct.Call("answer", {"question": "Capital of Norway?"})
        listeners = [lambda event: events.append(event.to_json())]
        (seen,) = await executor.run([call], pool, listeners=listeners)
    print(seen.status, seen.content, f"${seen.usage.usd:.7f}")
    print([(event["name"], event["failure"]) for event in events if event["t"] == "retry"])
    await runner.cleanup()


asyncio.run(main())
