"""The command line in a folder of its own, with one installed plugin: `band`."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from concertino.cli import command_line
from concertino.plugins import default_manager

Cli = Callable[..., Result]
Process = Callable[..., "subprocess.CompletedProcess[str]"]
Install = Callable[..., None]

BAND = '''
"""A plugin whose model speaks by the first word of the question."""
import asyncio
import click
import concertino
from concertino.strategies.parallel_rounds.format import write_round

ANSWER = [write_round("Enough.", [("final_answer", {})]), "<answer>three</answer>"]
SCRIPTS = {
    "add": [write_round("Add.", [("add", {"a": 1, "b": 2}), ("add", {"a": "x"}), ("echo", {"text": "hi"})]), *ANSWER],
    "nap": [
        write_round("Add.", [("add", {"a": 1, "b": 2})]),
        write_round("Nap.", [("add", {"a": 2, "b": 2}), ("nap", {"seconds": 2})]),
        *ANSWER,
    ],
    "babble": ["no calls at all"] * 9,
}


@concertino.tool(cost=concertino.Cost(units=1))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@concertino.tool(timeout=30)
async def nap(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "rested"


@concertino.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("out of tune \\x1b[31m")


@concertino.agent(models=("default",))
async def echo(ctx: concertino.Context, text: str) -> str:
    """Have a model repeat a text."""
    return (await ctx.model("band/parrot").chat(text)).text


class Lead(concertino.Model):
    async def chat(self, request):
        turn = sum(message.role == "assistant" for message in request.messages)
        usage = concertino.Usage(input_tokens=10, output_tokens=5)
        word = request.messages[1].text.split()[0]
        return concertino.Reply(SCRIPTS[word][turn], usage=usage)


class Parrot(concertino.Model):
    async def chat(self, request):
        return concertino.Reply(request.messages[-1].text, usage=concertino.Usage(input_tokens=1, output_tokens=1))


@click.command("tune")
def tune():
    """A command of a plugin."""
    click.echo("la")


@concertino.hookimpl
def concertino_tools():
    return [add, nap, fail]


@concertino.hookimpl
def concertino_agents():
    return [echo]


@concertino.hookimpl
def concertino_models():
    prices = concertino.Prices(input=1.0, output=2.0)
    return [concertino.ModelSpec("lead", Lead, "Leads.", prices), concertino.ModelSpec("parrot", Parrot, "Repeats.")]


@concertino.hookimpl
def concertino_cli():
    return [tune]
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed distributions."""
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


@pytest.fixture
def install(site: Path) -> Install:
    """`install(provider, source, *commands)`: install a plugin of one module, which has these commands."""

    def install(provider: str, source: str, *commands: str) -> None:
        (site / f"acme_{provider}.py").write_text(source, encoding="utf-8")
        info = site / f"acme_{provider}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: acme-{provider}\nVersion: 1.0\n")
        named = "".join(f"{command} = acme_{provider}\n" for command in commands)
        text = f"[concertino]\n{provider} = acme_{provider}\n[concertino.commands]\n{named}"
        (info / "entry_points.txt").write_text(text)

    return install


@pytest.fixture(autouse=True)
def band(site: Path, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing of the machine counts; `band` is installed; traces go to `runs` in an empty working directory."""
    install("band", BAND, "tune")
    everywhere = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: everywhere(path=[str(site)]))
    for variable in ("CONCERTINO_CONFIG", "CONCERTINO_DISABLE", "CONCERTINO_PLUGINS", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("CONCERTINO_TRACES", "runs")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for variable in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(variable)
    monkeypatch.syspath_prepend(str(site))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    default_manager.cache_clear()
    yield
    default_manager.cache_clear()
    for module in [name for name in sys.modules if name.startswith("acme_")]:
        del sys.modules[module]


@pytest.fixture
def cli() -> Cli:
    """`cli("run", …)`: the command line in this process, with its output caught."""

    def run(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(command_line, list(arguments), input=stdin)

    return run


@pytest.fixture
def process(site: Path) -> Process:
    """`process("run", …)`: the command line in a process of its own, with `band` as the only plugin."""

    def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "band"}
        command = [sys.executable, "-m", "concertino", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, **options)

    return run
