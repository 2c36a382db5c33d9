"""Orders and results are data: both ways through JSON, small, and an order's id says which run it is."""

from __future__ import annotations

import json
from typing import Any

import concertino as ct
import pytest
from concertino.rollouts import RunOrder, RunResult

ORDER = RunOrder(
    "How warm is it?",
    {"id": "weather/7", "answers": ["3"]},
    pool="0123456789abcdef",
    strategy=ct.ParallelRounds().to_json(),
    budget=ct.Budget(usd=0.5, rounds=4),
    sampling=ct.Sampling(temperature=0.7, stop=("END",)),
    seed=5,
    sample=2,
    folder="traces",
    group="g",
    priority=1,
)


def test_an_order_goes_through_json_and_back_and_is_small() -> None:
    text = json.dumps(ORDER.to_json())
    assert len(text) < 10_000
    assert RunOrder.from_json(json.loads(text)) == ORDER


def test_a_result_goes_through_json_and_back() -> None:
    result = RunResult("a", answer="3", stop="answered", usage=ct.Usage(usd=0.1), rewards={"right": 1.0}, data={"x": 1})
    assert RunResult.from_json(json.loads(json.dumps(result.to_json()))) == result
    failed = RunResult("a", "failed", detail="RuntimeError: no")
    assert RunResult.from_json(json.loads(json.dumps(failed.to_json()))) == failed


def test_equal_orders_are_one_run_wherever_its_trace_lies() -> None:
    same = RunOrder.from_json({**ORDER.to_json(), "id": "", "folder": "elsewhere", "priority": 9})
    assert same.id == ORDER.id
    assert ORDER.id.startswith("weather-7-2-")


@pytest.mark.parametrize(
    "change",
    [
        {"question": "How cold?"},
        {"task": {"id": "weather/8"}},
        {"seed": 6},
        {"sample": 3},
        {"pool": "f"},
        {"strategy": {"name": "agent-graph"}},
        {"budget": {"usd": 0.6}},
        {"sampling": {"temperature": 0.8}},
        {"group": "h"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_condition_is_another_run(change: dict[str, Any]) -> None:
    assert RunOrder.from_json({**ORDER.to_json(), **change, "id": ""}).id != ORDER.id


def test_what_cannot_be_sent_is_refused_when_the_order_is_made() -> None:
    with pytest.raises(ct.UsageError, match="an order must be plain JSON data"):
        RunOrder("q", {"tool": object()})


def test_a_field_that_no_order_has_is_refused() -> None:
    with pytest.raises(ct.UsageError, match=r"not an order of a run: .*colour"):
        RunOrder.from_json({"colour": "red"})
