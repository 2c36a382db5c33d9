"""Work on large data: a thread for it, and JSON that is written in steps."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from concertino.core import background
from concertino.core.background import THREAD_NAME, in_background, json_in_steps
from hypothesis import given
from hypothesis import strategies as st

texts = st.text(max_size=30) | st.sampled_from(['"' * 3_000, "é\n" * 700, "x" * 200_000, "\ud800", "\\\x00"])
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=70) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=30,
)


@given(plain)
def test_it_writes_what_json_writes(value: Any) -> None:
    assert json_in_steps(value) == json.dumps(value, ensure_ascii=False)
    assert json_in_steps(value, ",", ":") == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("value", [[float("nan")], {"a": {1: 2}}, [b"bytes"], {"a": [object()]}, [set()]])
def test_what_is_no_plain_data_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        json_in_steps(value)


def test_a_long_text_is_written_in_steps_between_which_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    json_in_steps({"text": "x" * (1 << 20), "rows": ["y" * 1_000] * 1_000})
    assert len(pauses) >= 20
    pauses.clear()
    json_in_steps({"text": "short"})
    assert pauses == []


async def test_it_runs_in_one_thread_in_order_and_gives_results_and_errors() -> None:
    order: list[int] = []
    names: set[str] = set()

    def work(number: int) -> int:
        names.add(threading.current_thread().name)
        order.append(number)
        if number == 3:
            raise ValueError("three")
        return number * 2

    def task(number: int) -> asyncio.Task[int]:
        return asyncio.create_task(in_background(lambda: work(number)))

    results = await asyncio.gather(*map(task, range(6)), return_exceptions=True)
    assert [str(result) for result in results] == ["0", "2", "4", "three", "8", "10"]
    assert order == [*range(6)]
    assert names == {THREAD_NAME}


async def test_a_cancelled_waiter_leaves_the_thread_to_the_others() -> None:
    held = threading.Event()
    first = asyncio.create_task(in_background(lambda: held.wait(10)))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(in_background(lambda: "second"))
    await asyncio.sleep(0)
    first.cancel()
    held.set()
    assert await second == "second"
    assert first.cancelled()


async def test_the_thread_ends_when_it_has_nothing_to_do_and_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_IDLE_SECONDS", 0.01)
    monkeypatch.setattr(background, "_background", background._Background())
    for _ in range(2):
        assert await in_background(lambda: threading.current_thread().name) == THREAD_NAME
        async with asyncio.timeout(5):
            while background._background._running:  # noqa: ASYNC110 - the thread ends, and tells nobody
                await asyncio.sleep(0.01)
