"""A web search and a page, with a SearXNG and a site that this program plays itself."""

import asyncio
import os

import concertino as ct
from aiohttp import web
from concertino_search import fetch_page_tool, web_search_tool


async def main(site: str) -> None:
    os.environ["SEARXNG_URL"] = site
    closed, open_here = fetch_page_tool(), fetch_page_tool(provider="local", allowed=["127.0.0.1"])
    pool = ct.Pool([web_search_tool("searxng"), closed, open_here])
    async with ct.Executor() as executor:
        (seen,) = await executor.run([ct.Call("web_search", {"queries": ["owls"]})], pool)
        address = seen.content["results"][0]["passages"][0]["id"]
        for name in ("fetch_page", "local/fetch_page"):
            (seen,) = await executor.run([ct.Call(name, {"url": address})], pool)
            print(seen.status, seen.content["text"] if seen.ok else seen.error.message.replace(site, "http://..."))


async def with_site() -> None:
    async def search(request: web.Request) -> web.Response:
        page = {"url": f"http://{request.host}/owls", "title": "Owls", "content": "On owls."}
        return web.json_response({"results": [page]})

    async def owls(request: web.Request) -> web.Response:
        return web.Response(text="<title>Owls</title><p>An owl hunts at night.", content_type="text/html")

    app = web.Application()
    app.router.add_get("/search", search)
    app.router.add_get("/owls", owls)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    await main(f"http://127.0.0.1:{runner.addresses[0][1]}")
    await runner.cleanup()


asyncio.run(with_site())
