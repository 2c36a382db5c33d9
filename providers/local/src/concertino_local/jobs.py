"""What is asked of a model's worker thread, and how its answers come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FIRST_WEIGHTS = "0"


@dataclass
class LocalStats:
    """What a model has done since it was loaded.

    Attributes:
        steps: forward passes that added a token to every row of the batch.
        prompts: forward passes over prompts.
        prompt_tokens: tokens read in them, padding not counted; the first step reads the last token of a prompt.
        cached_tokens: prompt tokens that did not have to be read, as their keys and values were known.
        output_tokens: tokens sampled.
        finished, cancelled, failed: requests by how they ended.
        running, waiting: requests that generate now, and that wait.
        weights: version of the weights.
    """

    steps: int = 0
    prompts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    finished: int = 0
    cancelled: int = 0
    failed: int = 0
    running: int = 0
    waiting: int = 0
    weights: str = FIRST_WEIGHTS


class Channel:
    """The way from the worker thread back to the task that waits.

    Attributes:
        loop: the event loop of that task.
        events: what has come: pieces of text, then a finished `Row`, a result or an exception.
        cancelled: set by the task when it no longer waits; the row leaves at the next step.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.cancelled = False

    async def next(self) -> Any:
        """The next event.

        Raises:
            Exception: that the worker has sent.
        """
        event = await self.events.get()
        if isinstance(event, BaseException):
            raise event
        return event


@dataclass
class Job:
    """Something to be done by the worker.

    Attributes:
        channel: who waits for it.
        prepare: makes the `RequestRow` of a request, given the `Session`.
        alone: work on the `Session` that runs while nothing generates; instead of `prepare`.
    """

    channel: Channel
    prepare: Callable[[Any], Any] | None = None
    alone: Callable[[Any], Any] | None = None


def call_in(loop: asyncio.AbstractEventLoop, events: list[tuple[Channel, Any]]) -> bool:
    """Deliver events in their loop; False if that is closed."""
    try:
        loop.call_soon_threadsafe(_deliver, events)
    except RuntimeError:
        return False
    return True


def _deliver(events: list[tuple[Channel, Any]]) -> None:
    for channel, event in events:
        channel.events.put_nowait(event)
