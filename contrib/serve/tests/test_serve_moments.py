"""The moments of a run as a stream follows them."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from pathlib import Path

from concertino.core.events import TextDelta
from concertino_serve.run_moments import LiveRun

PAUSE = 0.3


async def test_a_sign_of_life_comes_after_each_pause_without_news_and_never_before(tmp_path: Path) -> None:
    live = LiveRun(tmp_path / "a.trace.jsonl", tells_text=True)
    seen: list[tuple[str, float]] = []
    twice = asyncio.Event()

    async def read() -> None:
        async for moments in live.follow(PAUSE):
            seen.append(("".join(str(moment) for moment in moments), time.monotonic()))
            if [text for text, _ in seen[-2:]] == ["", ""]:
                twice.set()

    reading = asyncio.create_task(read())
    for text in ("one", "two", "three"):
        await asyncio.sleep(PAUSE / 3)
        live.hear(TextDelta("c1", "m/lead", "answer", text, 1, 0.0))
    await asyncio.wait_for(twice.wait(), 60)
    live.end()
    await asyncio.wait_for(reading, 60)
    assert [text for text, _ in seen if text] == ["one", "two", "three"]
    for (_, before), (text, at) in pairwise(seen):
        assert text or at - before > 0.9 * PAUSE


async def test_news_after_a_sign_of_life_are_told_at_once(tmp_path: Path) -> None:
    live = LiveRun(tmp_path / "a.trace.jsonl", tells_text=True)
    following = live.follow(PAUSE)
    assert await anext(following) == []
    live.hear(TextDelta("c1", "m/lead", "answer", "late", 1, 0.0))
    assert await anext(following) == ["late"]
    live.end()
    assert [moments async for moments in following] == []
