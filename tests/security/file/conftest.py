"""A run to be spoiled, and the command line in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from click.testing import CliRunner, Result
from concertino.cli import command_line
from concertino.core.errors import ConcertinoError
from concertino.strategies.parallel_rounds.format import write_round
from hostile_traces import every_kind, write_trace

Cli = Callable[..., Result]


@ct.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@ct.agent(models=("default",))
async def echo(ctx: ct.Context, text: str) -> str:
    """Have a model repeat a text."""
    return (await ctx.model("parrot").chat(text)).text


class Lead(ct.Model):
    """Calls in one round, then answers."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        said = sum(message.role == "assistant" for message in request.messages)
        calls = [("add", {"a": 1, "b": 2}), ("add", {"a": "x"}), ("echo", {"text": "hi"})]
        turns = [write_round("Add.", calls), write_round("Enough.", [("final_answer", {})]), "<answer>three</answer>"]
        return ct.Reply(turns[min(said, 2)], usage=ct.Usage(input_tokens=10, output_tokens=5))


class Parrot(ct.Model):
    """Repeats."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return ct.Reply(request.messages[-1].text, usage=ct.Usage(input_tokens=1, output_tokens=1))


POOL = ct.Pool.of(add, echo, ct.ModelSpec("parrot", Parrot, "Repeats.", ct.Prices(1.0, 2.0)))


def leader() -> ct.Orchestrator[Any]:
    """What led the run."""
    return ct.Orchestrator(Lead(), ct.ParallelRounds(max_rounds=4))


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of a run with an agent, a failed call, and one record of each other kind."""
    path = tmp_path_factory.mktemp("recorded") / "run.trace.jsonl"
    asyncio.run(leader().run("add", pool=POOL, trace=path))
    records = every_kind(list(ct.Trace.load(path).records))
    records[0]["run"] = "r"
    return records


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder; nothing of the machine counts."""
    for variable in [name for name in os.environ if name.startswith("CONCERTINO_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CONCERTINO_PLUGINS", "-")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def trace(here: Path, recorded: list[dict[str, Any]]) -> Path:
    """The trace of that run."""
    (here / "runs").mkdir()
    return write_trace(here / "runs" / "r.trace.jsonl", recorded)


@pytest.fixture
def cli() -> Cli:
    """`cli("traces", …)`: the command line in this process."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(command_line, list(arguments))

    return run


@pytest.fixture
def resume() -> Callable[[Path], str]:
    """`resume(path)`: what the SDK says against resuming the trace; empty where the run went on."""

    def run(path: Path) -> str:
        try:
            asyncio.run(leader().resume(path, pool=POOL))
        except ConcertinoError as error:
            return str(error)
        return ""

    return run
