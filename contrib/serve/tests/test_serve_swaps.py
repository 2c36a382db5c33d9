"""Pools that are swapped under load: no request fails, and none sees two of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import concertino as ct
import httpx2
import pytest
from concertino.core.errors import UsageError
from concertino_serve import settings_reload
from concertino_serve.serve_settings import Preset, ServeSettings
from concertino_serve.settings_reload import SettingsReload
from waiting import until, wait_until

from .serving_here import Here, Scripted, served
from .test_serve_client_tools import FLAT

ASK: Any = [{"role": "user", "content": "Which one?"}]


def generation(number: int, *, also: str = "") -> Preset:
    """A pool of which the model and the tool say its number."""

    @ct.tool
    async def which() -> str:
        """Which pool this is."""
        await asyncio.sleep(0.02)
        return f"tool {number}"

    def say(messages: list[ct.Message]) -> str:
        strategy = ct.ParallelRounds()
        if "tool_response" in messages[-1].text:
            seen = [f"tool {other}" for other in range(100) if f"tool {other}<" in messages[-1].text.replace('"', "<")]
            return "".join(strategy.write_answer(f"lead {number}, {' '.join(seen)}"))
        calls = [ct.Call("which", {}, "a"), *([ct.Call(also, {"day": "today"}, "b")] if also else [])]
        return str(strategy.write_turn(calls, "look"))

    spec = which.with_(description=f"Which pool this is: {number}.")
    pool = ct.Pool.of(spec, ct.ModelSpec("m/lead", lambda: Scripted(say, pause=0.01))).bind(orchestrator="m/lead")
    return Preset("helper", pool, strategy=ct.ParallelRounds(), instructions=f"You are {number}.")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file that holds the number of the pool."""
    made = tmp_path / "serve.toml"
    made.write_text("0")

    def read(path: Path) -> ServeSettings:
        text = path.read_text()
        if not text.isdecimal():
            raise UsageError(f"{path}: no number")
        return replace(settings_of_number(int(text), path), traces=tmp_path / "runs")

    monkeypatch.setattr(settings_reload, "read_serve_settings", read)
    return made


def settings_of_number(number: int, file: Path) -> ServeSettings:
    return ServeSettings({"helper": generation(number)}, traces=file.parent / "runs", files=(file,))


async def swapped_under_load(file: Path, clients: int, swaps: int) -> None:
    settings = replace(settings_of_number(0, file), files=())
    said: Counter[str] = Counter()
    async with served(settings) as here, httpx2.AsyncClient(verify=False, timeout=60) as client:
        here.app.serving.hub.swap(replace(settings, files=(file,)))
        reload, stop = SettingsReload(here.app.serving, file, pause=0.01), False

        async def ask() -> None:
            while not stop:
                body = {"model": "helper", "messages": ASK, "stream": bool(said.total() % 2)}
                answer = await client.post(f"{here.url}/v1/chat/completions", json=body)
                assert answer.status_code == 200, answer.content
                assert b'"error"' not in answer.content
                said[told(answer.content)] += 1

        async with reload.watching(by_signal=False):
            tasks = [asyncio.create_task(ask()) for _ in range(clients)]
            for number in range(1, swaps + 1):
                before = said.total()
                write(file, str(number))
                await wait_until(lambda: reload.swaps == number and said.total() > before)  # noqa: B023
            stop = True
            await asyncio.gather(*tasks)
        assert not reload.fault
        pools = {run["pool"] for run in setups(here)}
    assert set(said) <= {f"lead {number}, tool {number}" for number in range(swaps + 1)}, "two pools in one run"
    assert len(pools) > swaps // 2
    assert said.total() >= swaps


def write(file: Path, text: str) -> None:
    file.write_text(text)


def told(data: bytes) -> str:
    if not data.startswith(b"data:"):
        return str(json.loads(data)["choices"][0]["message"]["content"])
    chunks = [json.loads(line[6:]) for line in data.decode().split("\n\n") if line.startswith("data: {")]
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)


def setups(here: Here) -> list[Any]:
    return [ct.Trace.load(run.path).setup for run in here.app.serving.hub.runs.list()]


async def test_pools_are_swapped_under_load_and_no_run_sees_two(file: Path) -> None:
    await swapped_under_load(file, clients=4, swaps=4)


@pytest.mark.slow
async def test_twenty_swaps_under_many_clients_fail_no_request(file: Path) -> None:
    await swapped_under_load(file, clients=32, swaps=20)


async def test_a_run_that_waits_for_its_client_goes_on_with_the_pool_that_it_began_with(file: Path) -> None:
    settings = ServeSettings({"helper": generation(1, also="weather")}, traces=file.parent / "runs")
    async with served(settings) as here, here.client() as client:
        first = await client.responses.create(model="helper", input="Which one?", tools=FLAT)
        here.app.serving.hub.swap(settings_of_number(2, file))
        call = first.output[-1]
        assert call.type == "function_call"
        results: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
        second = await client.responses.create(model="helper", input=results)
        third = await client.responses.create(model="helper", input="Which one?")
    assert second.output_text == "lead 1, tool 1"
    assert third.output_text == "lead 2, tool 2"


async def test_a_file_with_a_mistake_changes_nothing(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = replace(settings_of_number(0, file), files=())
    async with served(settings) as here, here.client() as client:
        reload = SettingsReload(here.app.serving, file)
        write(file, "3 apples")
        await reload.reload()
        assert "no number" in reload.fault
        got = await client.chat.completions.create(model="helper", messages=ASK)
        assert got.choices[0].message.content == "lead 0, tool 0"
        write(file, "3")
        await reload.reload()
        assert not reload.fault
        got = await client.chat.completions.create(model="helper", messages=ASK)
    assert got.choices[0].message.content == "lead 3, tool 3"
    assert any("the presets stay as they are" in record.message for record in caplog.records)


POOL = 'members = ["toy/*"]\n[roles]\norchestrator = "{}"\n'
PRESET = '[presets.{}]\npool = "pool.toml"\nbudget = "usd=0.5"\n'


@pytest.mark.slow
@pytest.mark.parametrize("way", ["signal", "file", "pool file"])
def test_the_command_serves_what_its_files_say_now(way: str, tmp_path: Path) -> None:
    pool, settings, log = tmp_path / "pool.toml", tmp_path / "serve.toml", tmp_path / "log"
    pool.write_text(POOL.format("toy/leader"))
    settings.write_text(PRESET.format("one"))
    command = [sys.executable, "-m", "concertino", "serve", "serve.toml", "--port", "0", "--json"]
    with log.open("w") as errors:
        server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert server.stdout is not None
        told = json.loads("".join(iter(server.stdout.readline, "}\n")) + "}")
        assert models(told["address"]) == ["one"]
        if way == "pool file":
            pool.write_text(POOL.format("none/such"))
            until(lambda: "the presets stay as they are" in log.read_text())
            assert models(told["address"]) == ["one"]
            pool.write_text(POOL.format("toy/leader"))
        settings.write_text(PRESET.format("one") + PRESET.format("two"))
        if way == "signal":
            os.kill(server.pid, signal.SIGHUP)
        until(lambda: models(told["address"]) == ["one", "two"])
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)


def models(address: str) -> list[str]:
    answer = httpx2.get(f"{address}/v1/models", timeout=30)
    return [model["id"] for model in answer.json()["data"]]
