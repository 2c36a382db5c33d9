"""Every strategy survives a model that writes garbage: a real server with a tiny model at a high temperature.

What comes back is random text with fragments of every format. A run must end for a stated reason, each call that could
not be read must be a PARSE_ERR, and nothing may be raised. `CONCERTINO_FUZZ=1` makes 200 runs of each strategy.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Any

import concertino as ct
import pytest
from concertino.strategies import BUILT_IN, Strategy
from concertino.testing import fake_agent, fake_tool
from concertino_openai.client import OpenAIModel

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

RUNS = 200 if os.environ.get("CONCERTINO_FUZZ") else 12
AT_ONCE = 8
QUESTIONS = ("What is 2 + 3?", "Say hello.", "Who are you?", "12 * 12 = ?")
SCHEMA = {"type": "object", "properties": {"subtask": {"type": "string"}}, "required": ["subtask"]}
POOL = ct.Pool.of(
    fake_agent("solve", returns="5", schema=SCHEMA),
    fake_tool("search", returns=["nothing"], schema={"type": "object", "properties": {"query": {"type": "string"}}}),
    fake_tool("python", returns="5", schema={"type": "object", "properties": {"code": {"type": "string"}}}),
)


def short(kind: type[Strategy]) -> Strategy:
    """The strategy with as few turns as it allows."""
    plain = kind()
    fewer = {key: 3 for key in ("max_rounds", "max_turns", "turns") if key in plain.to_json()}
    return kind.from_json({**plain.to_json(), **fewer})


@pytest.mark.parametrize("name", BUILT_IN)
async def test_a_strategy_survives_random_text_and_ends_for_a_stated_reason(vllm_server: Any, name: str) -> None:
    model = OpenAIModel(server="vllm", model=vllm_server.model, base_url=vllm_server.base_url)
    strategy = short(BUILT_IN[name])
    gate = asyncio.Semaphore(AT_ONCE)

    async def run(number: int) -> ct.Run:
        # As high as vLLM takes: the tiny model is sure of what it was taught, and a run may be one reply long.
        sampling = ct.Sampling(temperature=2.0, seed=number, max_tokens=64)
        async with gate:
            orchestrator = ct.Orchestrator(model, strategy, sampling=sampling)
            question = QUESTIONS[number % len(QUESTIONS)]
            return await orchestrator.run(question, pool=POOL, budget=ct.Budget(seconds=120, calls=40))

    runs = await asyncio.gather(*(run(number) for number in range(RUNS)))
    await model.close()
    stops = Counter(run.stop for run in runs)
    statuses = Counter(str(seen.status) for run in runs for seen in run.observations)
    print(f"FIGURE garbage, {name}: {RUNS} runs, stops {dict(stops)}, statuses {dict(statuses)}")  # noqa: T201
    assert set(stops) <= set(ct.STOP_REASONS) - {"crashed", "unfinished", "cancelled"}
    assert set(statuses) <= {"OK", "PARSE_ERR", "EXEC_ERR"}
    for run in runs:
        for seen in run.observations:
            assert seen.ok or (seen.error is not None and seen.error.message)
    # Else the model always says the same, and nothing was tried.
    assert len({event.reply.text for run in runs for event in run.events if hasattr(event, "reply")}) > RUNS // 2
