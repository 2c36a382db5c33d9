"""A teacher from settings: with whom it works, and what the set says of that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError
from concertino_bench.reports import read_results
from concertino_train.collection import pools_of, run_collection
from concertino_train.config import TrainConfig, load_config
from concertino_train.data import read_conversations
from plain_results import plain_results

SETTINGS: dict[str, Any] = {
    "name": "tiny",
    "model": {"new": {"layers": 1, "hidden": 16, "heads": 2}},
    "pool": {"make": {"name": "practice", "manners": ["sure"], "twin": False}},
    "tasks": {"train": [{"set": "practice/facts", "options": {"split": "train", "count": 6, "level": 1}}]},
    "data": {
        "collect": {"teacher": {"name": "practice"}, "samples": 1},
        "select": {"tool_share": None, "recovery": "any", "per_question": 3},
    },
    "rollout": {"strategy": {"name": "parallel-rounds", "prompt": "brief", "references": True, "max_rounds": 3}},
}


def varied(*settings: str) -> TrainConfig:
    return load_config(SETTINGS, ["pool.variation.rename=1.0", "data.collect.pools=3", *settings])


def test_a_teacher_works_on_every_task_with_every_pool_of_the_variation(tmp_path: Path) -> None:
    collected = run_collection(varied(), output=tmp_path)
    items = read_results(collected.results).items
    assert collected.runs == len(items) == 3 * 6
    assert {item.key.system for item in items} == {"teacher-0", "teacher-1", "teacher-2"}
    assert len({item.pool for item in items}) == 3
    assert collected.set is not None
    prompts = {each.messages[0].text for each in read_conversations(collected.set)}
    assert len(prompts) == 3, "every pool has other names"


def test_a_pool_that_varies_is_taught_over_varied_pools_in_turn(tmp_path: Path) -> None:
    collected = run_collection(load_config(SETTINGS, ["pool.variation.rename=1.0"]), output=tmp_path)
    items = read_results(collected.results).items
    assert collected.runs == len(items) == 6
    assert len({item.pool for item in items}) == 6


def test_without_pools_the_teacher_has_the_pool_as_it_is(tmp_path: Path) -> None:
    config = load_config(SETTINGS, ["pool.variation.rename=1.0", "data.collect.pools=0"])
    collected = run_collection(config, output=tmp_path)
    items = read_results(collected.results).items
    assert {item.key.system for item in items} == {"teacher"}
    assert {item.pool for item in items} == {pools_of(config)["teacher"].id}


def test_pools_of_a_teacher_are_those_that_the_first_questions_of_reinforcement_have() -> None:
    from concertino_train.factories.pools import VariedPool

    config = varied()
    drawn = VariedPool(config.pool, config.trainer.seed)
    assert [pool.id for pool in pools_of(config).values()] == [drawn.draw(number)[0].id for number in range(3)]


def test_collecting_with_several_pools_goes_on_where_it_was(tmp_path: Path) -> None:
    first = run_collection(varied(), output=tmp_path)
    lines = first.results.read_text(encoding="utf-8").splitlines()
    first.results.write_text("\n".join(lines[:8]) + "\n", encoding="utf-8")
    again = run_collection(varied(), output=tmp_path)
    assert again.runs == first.runs
    keys = [json.loads(line).get("key") for line in again.results.read_text(encoding="utf-8").splitlines()]
    assert len(keys) == len(set(map(str, keys)))


def test_several_pools_of_a_pool_that_never_varies_are_refused() -> None:
    with pytest.raises(UsageError, match=r"data\.collect\.pools=3: all would be the same; say in pool\.variation"):
        pools_of(load_config(SETTINGS, ["data.collect.pools=3"]))


@pytest.mark.slow
def test_worker_processes_collect_what_this_process_collects(tmp_path: Path) -> None:
    """Pools that vary and a teacher that a function makes have no names; the settings make them again there."""
    for on in ("local", "local:2"):
        collected = run_collection(varied(), output=tmp_path / on, on=on)
        assert (collected.missing, collected.right) == (0, collected.runs)
    assert plain_results(tmp_path / "local:2/collected/results.jsonl") == plain_results(
        tmp_path / "local/collected/results.jsonl"
    )
    assert [each.messages for each in read_conversations(tmp_path / "local:2" / "set")] == [
        each.messages for each in read_conversations(tmp_path / "local" / "set")
    ]
