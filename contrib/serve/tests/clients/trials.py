"""What a client is tried with: each trial is a function; the program prints what became of it, as JSON.

A program runs in the environment of its client, so this module needs nothing but Python.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

URL, KEY = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
ASK, ANSWER = "What does a kilo cost?", "A kilo costs $4, says the shop."
SCHEMA_ASK, SCHEMA_ANSWER = "Give the price as an object.", {"usd": 4}
MESSAGES: list[Any] = [{"role": "user", "content": ASK}]
PRICE: dict[str, Any] = {
    "type": "object",
    "properties": {"usd": {"type": "integer"}},
    "required": ["usd"],
    "additionalProperties": False,
}
_TRIALS: dict[str, Callable[[], Any]] = {}


def trial(function: Callable[[], Any]) -> Callable[[], Any]:
    _TRIALS[function.__name__] = function
    return function


def same(found: object, expected: object = ANSWER) -> None:
    if found != expected:
        raise ValueError(f"{found!r}; expected {expected!r}")


def run() -> None:
    with asyncio.Runner() as loop:  # one for all: some clients keep their connections
        said = {name: _outcome(function, loop) for name, function in _TRIALS.items()}
    sys.stdout.write(f"\n{json.dumps(said)}")


def _outcome(function: Callable[[], Any], loop: asyncio.Runner) -> str:
    try:
        result = function()
        if inspect.iscoroutine(result):
            loop.run(result)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:500] + traceback.format_exc()[-800:]
    return "ok"
