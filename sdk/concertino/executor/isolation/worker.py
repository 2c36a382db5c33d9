"""The program of a worker process, which is given MODULE and QUALNAME.

Reads one JSON object per line from standard input, `{"arguments": {…}, "most": bytes}`, and answers each with one JSON
line on the pipe that was its standard output: `{"result": …}`, `{"too_large": bytes}` where the result has more than
are taken, or `{"error": "Type: text"}`. Ends when its input ends; its guard ends it with
its parent, even while it is busy in C code.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import signal
import sys
from collections.abc import Callable
from json import dumps, loads
from typing import Any

_ERROR_CHARS = 10_000
"""Characters of an error's text that are passed on."""


def _find(module: str, qualname: str) -> Any:
    """What is published: a function, or the spec that it was decorated into."""
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _callable(found: Any) -> Callable[..., Any]:
    # A decorated function is published as its spec; the arguments are converted as in the parent.
    function = getattr(found, "function", found)
    convert = getattr(found, "convert", None)
    if getattr(found, "takes_mapping", False):
        return lambda **arguments: function(arguments)
    return (lambda **arguments: function(**convert(arguments))) if convert else function


def main(module: str, qualname: str) -> None:
    """Serve calls until the input ends."""
    replies = os.dup(1)  # not inherited by what the tool executes
    devnull = os.open(os.devnull, os.O_WRONLY)
    # What the tool prints must not mix with the answers.
    os.dup2(devnull, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    found, own = _find(module, qualname), os.getpid()
    function, dump = _callable(found), getattr(found, "dump", None)
    for line in sys.stdin.buffer:
        request = loads(line)
        try:
            result = function(**request["arguments"])
            if inspect.isawaitable(result):
                result = asyncio.run(_wait(result))
            data = _answer(dump(result) if dump else result, request["most"])
        except BaseException as error:
            # A tool that calls `sys.exit` has answered, and the worker lives on.
            data = dumps({"error": f"{type(error).__name__}: {error}"[:_ERROR_CHARS]}).encode() + b"\n"
        if os.getpid() != own:
            os._exit(0)  # a child that the tool forked: the answer is its parent's to give
        while data:
            # A pipe may take only a part of a long answer.
            data = data[os.write(replies, data) :]


def _answer(result: Any, most: int) -> bytes:
    """The line that gives a result, or says that it is too large: the parent would not take it."""
    if isinstance(result, str) and len(result) > most:
        return dumps({"too_large": len(result)}).encode() + b"\n"
    # As UTF-8: escapes would make a text up to six times as long.
    text = dumps(result, allow_nan=False, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(text) > most:
        return dumps({"too_large": len(text)}).encode() + b"\n"
    return b'{"result": ' + text + b"}\n"


async def _wait(awaitable: Any) -> Any:
    return await awaitable


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
