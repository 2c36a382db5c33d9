"""Items with as little as a test needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from concertino_bench import Verdict
from concertino_bench.tasks import Item, Key

MakeItem = Callable[..., Item]


@pytest.fixture(scope="session")
def item() -> MakeItem:
    """Makes an item: `item("a", "task-1", right=True, usd=…)`."""

    def make(system: str = "a", task: str = "t1", sample: int = 0, right: bool = True, **fields: Any) -> Item:
        verdict = fields.pop("verdict", Verdict.RIGHT if right else Verdict.WRONG)
        return Item(Key(system, task, sample), "number", verdict, "because", float(right), **fields)

    return make
