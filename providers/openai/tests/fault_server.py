"""A server that does what servers should not, on a free port of the loopback interface.

The first part of the path names the fault: `http://127.0.0.1:PORT/<fault>/v1`. It counts the requests for each, as the
server sees them, and gives everything back at its end.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import formatdate

from aiohttp import web

from .streams import DONE, END, chunk, said, sse, usage

Fault = Callable[["FaultServer", web.Request], Awaitable[web.StreamResponse]]
FAULTS: dict[str, Fault] = {}
GOOD = said("Hel", "lo") + END + usage() + DONE
HTML = "<html><head><title>Welcome</title></head><body>It works!</body></html>"


def fault(function: Fault) -> Fault:
    FAULTS[function.__name__] = function
    return function


class FaultServer:
    """The server, while it runs."""

    def __init__(self) -> None:
        self.address = ""
        self.seen: Counter[str] = Counter()
        self.headers: list[Mapping[str, str]] = []
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()

    def url(self, name: str) -> str:
        return f"{self.address}/{name}/v1"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["fault"]
        self.seen[name] += 1
        self.headers.append(request.headers)
        if name.isdigit():
            return web.json_response({"error": {"message": f"status {name}"}}, status=int(name))
        await request.read()
        self.asked.set()
        return await FAULTS[name](self, request)


@asynccontextmanager
async def serving(*routes: web.RouteDef) -> AsyncIterator[str]:
    """Serve on a free port for as long as the block lasts; gives the address."""
    app = web.Application(client_max_size=2**24)
    app.add_routes(routes)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def fault_server() -> AsyncIterator[FaultServer]:
    """Run one for as long as the block lasts."""
    server = FaultServer()
    async with serving(web.route("*", "/{fault}/v1/{path:.*}", server.handle)) as url:
        server.address = url
        yield server


@asynccontextmanager
async def raw_server(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """A server that speaks in bytes; gives its port."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def stream(request: web.Request, *pieces: bytes, **headers: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **headers})
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    return response


async def ended(request: web.Request, *pieces: bytes, **headers: str) -> web.StreamResponse:
    response = await stream(request, *pieces, **headers)
    await response.write_eof()
    return response


def reset(request: web.Request) -> None:
    """Drop the connection without a farewell."""
    assert request.transport is not None
    request.transport.abort()


def refusal(status: int, message: str, **headers: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status, headers=headers)


# -- what works ------------------------------------------------------------------------------------------------------


@fault
async def good(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, GOOD)


@fault
async def plain_answer(server: FaultServer, request: web.Request) -> web.StreamResponse:
    message = {"role": "assistant", "content": "Hello"}
    return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


@fault
async def compressed(server: FaultServer, request: web.Request) -> web.StreamResponse:
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}
    return web.Response(body=gzip.compress(GOOD), headers=headers)


@fault
async def event_of_600_kb(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, said("x" * 600_000), END)


@fault
async def no_content_type(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, GOOD, **{"Content-Type": "application/octet-stream"})


@fault
async def hang_after_done(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, GOOD)
    await asyncio.sleep(60)
    return response


@fault
async def reset_after_finish(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, said("Hello"), END)
    await asyncio.sleep(0.05)
    reset(request)
    return response


@fault
async def busy_twice(server: FaultServer, request: web.Request) -> web.StreamResponse:
    if server.seen["busy_twice"] <= 2:
        return refusal(503, "the queue is full")
    return await ended(request, GOOD)


# -- refusals --------------------------------------------------------------------------------------------------------


@fault
async def slow_down(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return refusal(429, "slow down", **{"Retry-After": "0.01"})


@fault
async def slow_down_until(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return refusal(429, "slow down", **{"Retry-After": formatdate(time.time() - 5, usegmt=True)})


@fault
async def slow_down_for_an_hour(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return refusal(429, "slow down", **{"Retry-After": "3600"})


@fault
async def no_credit(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return refusal(429, "You exceeded your current quota")


@fault
async def too_long(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return refusal(400, "This model's maximum context length is 4096 tokens")


@fault
async def validation_500(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return refusal(500, "[{'type': 'literal_error', 'msg': \"Input should be 'text'\"}]")


@fault
async def error_in_200(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.json_response({"error": {"code": 402, "message": "Insufficient credits"}})


@fault
async def list_in_400(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.json_response([{"error": {"code": 400, "message": "bad field"}}], status=400)


@fault
async def redirect(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": "http://127.0.0.1:1/stranger"})


@fault
async def html(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(text=HTML, content_type="text/html")


@fault
async def html_502(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(text=HTML, content_type="text/html", status=502)


@fault
async def error_body_hangs(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=400, headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"error": {"message": "half')
    await asyncio.sleep(60)
    return response


# -- silence ---------------------------------------------------------------------------------------------------------


@fault
async def hang(server: FaultServer, request: web.Request) -> web.StreamResponse:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        server.cancelled.set()
        raise
    return web.Response()


@fault
async def hang_midway(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, said("Hel"))
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        server.cancelled.set()
        raise
    return response


@fault
async def drip(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request)
    try:
        while True:
            await response.write(said("x"))
            await asyncio.sleep(0.02)
    except (asyncio.CancelledError, ConnectionError):
        server.cancelled.set()
        raise


@fault
async def comments_for_ever(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request)
    while True:
        await response.write(b": still there\n\n")
        await asyncio.sleep(0.02)


# -- breaks ----------------------------------------------------------------------------------------------------------


@fault
async def reset_before_headers(server: FaultServer, request: web.Request) -> web.StreamResponse:
    reset(request)
    return web.Response()


@fault
async def reset_before_the_first_token(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, chunk({"role": "assistant", "content": ""}))
    await asyncio.sleep(0.05)
    reset(request)
    return response


@fault
async def reset_midway(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = await stream(request, said("Hel"))
    await asyncio.sleep(0.05)
    reset(request)
    return response


@fault
async def closed_without_finish(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, said("Hel"), DONE)


@fault
async def closed_without_a_word(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request)


@fault
async def half_a_plain_answer(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(body=b'{"choices": [{"message": {"content": "Hel', content_type="application/json")


@fault
async def empty(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"", content_type="application/json")


# -- rubbish ---------------------------------------------------------------------------------------------------------


@fault
async def no_json(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"all systems nominal", content_type="application/json")


@fault
async def other_json(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return web.json_response({"status": "ok"})


@fault
async def no_json_event(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, b"data: upstream is away\n\n")


@fault
async def no_json_event_midway(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, said("Hel"), b"data: {nonsense}\n\n")


@fault
async def error_event(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, sse({"error": {"code": 429, "message": "slow down"}}))


@fault
async def error_event_midway(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, said("Hel"), sse({"error": {"code": 502, "message": "away"}}))


@fault
async def line_of_10_mb(server: FaultServer, request: web.Request) -> web.StreamResponse:
    return await ended(request, b"data: ", *[b"x" * 2**20] * 10, b"\n\n")


@fault
async def gzip_bomb(server: FaultServer, request: web.Request) -> web.StreamResponse:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return web.Response(body=_BOMB, headers=headers)


@fault
async def gzip_bomb_of_events(server: FaultServer, request: web.Request) -> web.StreamResponse:
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}
    return web.Response(body=_BOMB_OF_EVENTS, headers=headers)


@fault
async def broken_gzip(server: FaultServer, request: web.Request) -> web.StreamResponse:
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}
    return web.Response(body=GOOD, headers=headers)


@fault
async def endless_error(server: FaultServer, request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(status=400, headers={"Content-Type": "text/plain"})
    await response.prepare(request)
    while True:
        await response.write(b"no " * 10_000)


def _bomb(piece: bytes, size: int) -> bytes:
    return gzip.compress(piece * (size // len(piece)), 6)


_BOMB = _bomb(b" " * 1024, 100 * 2**20)
_BOMB_OF_EVENTS = _bomb(said("x"), 100 * 2**20)
