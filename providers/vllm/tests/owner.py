"""A program that owns a server, says where it is, and then ends in the way that its argument names."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time

import concertino_vllm
from concertino import ChatRequest, Message
from concertino_vllm.chat_model import VllmModel

for ending in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(ending) is signal.SIG_IGN:  # as `nohup` and background jobs of a shell leave it
        signal.signal(ending, signal.default_int_handler if ending is signal.SIGINT else signal.SIG_DFL)

HELLO = ChatRequest([Message("user", "Hello.")])
OPTIONS = {"model": "someone/some-model", "grace_seconds": 5.0, **json.loads(os.environ.get("OPTIONS", "{}"))}
spec = concertino_vllm.model("coder", **OPTIONS)
server = concertino_vllm.server(spec)


def say(**what: object) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


async def used() -> VllmModel:
    model = spec.factory()
    assert isinstance(model, VllmModel)
    await model.chat(HELLO)
    health = await server.health()
    say(pid=health.pid, url=health.url, log=health.log, owner=os.getpid())
    return model


async def close() -> None:
    await (await used()).close()
    say(closed=True)
    await asyncio.sleep(600)


async def forget() -> None:
    await used()


async def raise_error() -> None:
    await used()
    raise RuntimeError("a mistake")


async def leave() -> None:
    await used()
    sys.exit(3)


async def leave_at_once() -> None:
    await used()
    os._exit(4)


async def wait() -> None:
    model = await used()
    await asyncio.sleep(600)
    await model.close()


async def fork() -> None:
    """A child that holds whatever it has inherited, and outlives its parent."""
    model = await used()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        time.sleep(float(os.environ["CHILD_SECONDS"]))  # noqa: ASYNC251
        os._exit(0)
    say(child=child)
    await asyncio.sleep(600)
    await model.close()


async def state() -> None:
    """Weights were written for the server."""
    model = await used()
    folder = server.new_state()
    (folder / "model.safetensors").write_bytes(b"weights")
    say(state=str(folder.parent))
    await asyncio.sleep(600)
    await model.close()


async def replace() -> None:
    await used()
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)  # owner.py"])


def loop_end() -> None:
    """The process goes on after its event loop has ended."""
    asyncio.run(forget())
    say(loop="ended")
    time.sleep(600)


def thread() -> None:
    """The thread that started it ends; the server is still good for another one."""
    models: list[VllmModel] = []

    def start() -> None:
        loop = asyncio.new_event_loop()
        models.append(loop.run_until_complete(used()))
        loop.close()

    first = threading.Thread(target=start)
    first.start()
    first.join()
    time.sleep(1.5)
    say(ok=asyncio.run(server.health()).ok)
    time.sleep(600)


def starting() -> None:
    """It never becomes ready."""
    threading.Thread(target=lambda: asyncio.run(used()), daemon=True).start()
    while server._process is None or not server._process.started.done():
        time.sleep(0.01)
    say(pid=server._process.started.result(), log=str(server._process.log), owner=os.getpid())
    time.sleep(600)


if __name__ == "__main__":
    way = globals()[sys.argv[1]]
    if asyncio.iscoroutinefunction(way):
        asyncio.run(way())
    else:
        way()
