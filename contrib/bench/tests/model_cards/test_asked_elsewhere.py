"""Descriptions of models that are asked in other processes: the same, but for the seconds in them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from concertino.rollouts import RunOrder
from concertino_bench.model_cards import Described, describe, make_task
from concertino_bench.model_cards.asked_elsewhere import ModelRequests, _request_to_json, asked_elsewhere

TASKS = [make_task(f"What is {n} plus {n}?", str(2 * n), "sums", "number") for n in range(3)]
REQUEST = ct.ChatRequest([ct.Message("user", "Hello.")], sampling=ct.Sampling(max_tokens=5, stop=("END",)))


class Failing(ct.Model):
    """Fails as a server does, or as a plugin does."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        raise self.error


def described(tmp_path: Path, on: str) -> Described:
    pool = ct.Pool.installed("toy/conductor", "toy/leader")
    return asyncio.run(describe(pool, TASKS, writer=None, cache=tmp_path / (on or "here"), on=on))


def plain(found: Described) -> list[dict[str, Any]]:
    """What does not depend on the clock."""
    clock = {"seconds_median": 0.0, "seconds_p90": 0.0, "at": 0.0, "evidence": ""}
    return [replace(each.profile, **clock).to_json() for each in found.descriptions]


@pytest.mark.slow
def test_models_in_worker_processes_are_described_as_in_this_one(tmp_path: Path) -> None:
    here, there = described(tmp_path, ""), described(tmp_path, "local:2")
    assert {each.model for each in there.descriptions} == {"toy/conductor", "toy/leader"}
    assert plain(there) == plain(here)
    assert there.pool.models[0].name == here.pool.models[0].name
    assert there.usage.tokens == here.usage.tokens > 0


def performed(error: Exception) -> Any:
    async def run() -> Any:
        pool = ct.Pool.of(ct.ModelSpec("acme/m", lambda: Failing(error)))
        work = ModelRequests(pool)
        return (await work.perform(RunOrder(model="acme/m", task=_request_to_json(REQUEST), id="r"))).data

    return asyncio.run(run())


def test_a_failure_keeps_its_class_and_what_the_server_said() -> None:
    told = ct.ProviderError.from_http(429, "slow down", retry_after=3.5)
    data = performed(told)["error"]
    assert (data["failure"], data["retry_after"], data["status"]) == ("throttled", 3.5, 429)
    assert performed(KeyError("x"))["error"]["failure"] == "bug"


@pytest.mark.slow
def test_a_failure_elsewhere_is_raised_here(tmp_path: Path) -> None:
    async def run() -> None:
        pool = ct.Pool.installed("toy/leader")
        async with asked_elsewhere(pool, "local:1", slots=2) as placed:
            model: Any = placed.model("toy/leader").factory()
            assert (await model.chat(REQUEST)).usage.tokens
            model._name = "toy/none"
            with pytest.raises(ct.ProviderError, match="toy/none"):
                await model.chat(REQUEST)

    asyncio.run(run())


def test_a_pool_that_cannot_be_loaded_by_name_is_refused() -> None:
    async def run() -> None:
        pool = ct.Pool.of(ct.ModelSpec("acme/m", lambda: Failing(KeyError())))
        async with asked_elsewhere(pool, "local:1", slots=2):
            pass

    with pytest.raises(ct.PoolError, match="cannot be sent to another process"):
        asyncio.run(run())
