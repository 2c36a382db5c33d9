"""The program of a worker process.

    python -m concertino.executor.isolation.worker MODULE QUALNAME REPLY_FD LIFELINE_FD

Reads one JSON object of arguments per line from standard input, answers each with one JSON line on REPLY_FD:
`{"result": …}` or `{"error": "Type: text"}`. Ends when its input ends, or with its parent: the kernel
kills it when the other end of LIFELINE_FD closes, even while it is busy in C code.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable
from json import dumps, loads
from typing import Any


def _die_with_parent(lifeline: int) -> None:
    if sys.platform == "linux":
        import fcntl

        # The kernel signals the reader of a pipe when the last writer goes away; make that signal SIGKILL.
        f_setsig = 10
        fcntl.fcntl(lifeline, f_setsig, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())  # the group: what the tool forked dies too
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)

    def watch() -> None:
        os.read(lifeline, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _find(module: str, qualname: str) -> Callable[..., Any]:
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    # A decorated function is published as its spec; the arguments are converted as in the parent.
    function = getattr(found, "function", found)
    convert = getattr(found, "convert", None)
    if getattr(found, "takes_mapping", False):
        return lambda **arguments: function(arguments)
    return (lambda **arguments: function(**convert(arguments))) if convert else function


def main(module: str, qualname: str, reply_fd: int, lifeline: int) -> None:
    """Serve calls until the input ends."""
    _die_with_parent(lifeline)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    function, own = _find(module, qualname), os.getpid()
    for line in sys.stdin.buffer:
        try:
            result = function(**loads(line))
            if inspect.isawaitable(result):
                result = asyncio.run(_wait(result))
            answer = dumps({"result": result}, allow_nan=False)
        except BaseException as error:
            answer = dumps({"error": f"{type(error).__name__}: {error}"})
        if os.getpid() != own:
            os._exit(0)  # a child that the tool forked: the answer is its parent's to give
        data = answer.encode() + b"\n"
        while data:
            data = data[os.write(reply_fd, data) :]


async def _wait(awaitable: Any) -> Any:
    return await awaitable


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
