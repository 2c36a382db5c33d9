"""Simulated models, which really answer one grammar of questions: what is measured is what they are."""

from __future__ import annotations

from pathlib import Path
from random import Random

import concertino as ct
import pytest
from concertino_bench import Task
from concertino_bench.model_cards import Described, describe, make_task
from concertino_bench.model_cards.profile import Profile

writer = pytest.importorskip("concertino_toy.problems.writer")

KINDS = {
    "short": {"depth": 1, "breadth": 1},
    "long": {"depth": 8, "breadth": 2},
    "false note": {"depth": 3, "breadth": 1, "lure": True},
}
EACH = 12


def simulated_tasks() -> list[Task]:
    """Questions in the grammar, with the answers that their writer knows."""
    tasks = []
    for kind, sizes in KINDS.items():
        for number in range(EACH):
            question, answers = writer.make_question(Random(f"{kind} {number}"), 1, **sizes)
            tasks.append(make_task(question, str(answers[0]), kind, "number"))
    return tasks


@pytest.fixture
async def found(tmp_path: Path) -> Described:
    pool = ct.Pool.installed("toy/swift", "toy/steady", "toy/sage")
    return await describe(pool, simulated_tasks(), cache=tmp_path)


def profiles(found: Described) -> dict[str, Profile]:
    return {described.model: described.profile for described in found.descriptions}


async def test_dearer_models_are_measured_to_be_better_slower_and_dearer(found: Described) -> None:
    by_name = profiles(found)
    swift, steady, sage = (by_name[f"toy/{name}"] for name in ("swift", "steady", "sage"))
    assert swift.overall.accuracy < steady.overall.accuracy < sage.overall.accuracy
    assert swift.usd_per_task is not None
    assert steady.usd_per_task is not None
    assert sage.usd_per_task is not None
    assert swift.usd_per_task < steady.usd_per_task < sage.usd_per_task


async def test_what_a_skill_lacks_is_measured_where_it_is_needed(found: Described) -> None:
    by_name = profiles(found)
    assert by_name["toy/swift"].by_kind["false note"].accuracy == 0
    assert by_name["toy/sage"].by_kind["false note"].accuracy == 1
    assert by_name["toy/swift"].by_kind["long"].accuracy < by_name["toy/swift"].by_kind["short"].accuracy


async def test_the_texts_say_it(found: Described) -> None:
    texts = {described.model: described.text for described in found.descriptions}
    assert "false note (0 % of 12)" in texts["toy/swift"].partition("Unreliable: ")[2]
    assert "Reliable: false note (100 % of 12)" in texts["toy/sage"]
    assert all("Measured on 36 tasks" in text for text in texts.values())


async def test_a_described_pool_is_saved_with_its_texts_and_read_again(found: Described, tmp_path: Path) -> None:
    found.pool.save(tmp_path / "pool.toml")
    assert ct.Pool.load(tmp_path / "pool.toml") == found.pool
    assert "Measured on 36 tasks" in (tmp_path / "pool.toml").read_text(encoding="utf-8")
