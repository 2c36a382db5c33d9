"""What every model owes to those who ask it, in both modes, and what the package owes as a plugin."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from concertino import Model
from concertino.cli import command_line
from concertino.core.settings import Settings
from concertino.plugins import PluginManager
from concertino.testing import ModelConformance, check_package
from concertino_openai.client import OpenAIModel
from concertino_openai.dialects import PRESETS

from .echo_server import echo_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The echo server, in a loop of its own: the checks make their own loops."""
    ready, done, urls = threading.Event(), threading.Event(), []

    async def serve() -> None:
        async with echo_server() as address:
            urls.append(address)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    yield urls[0]
    done.set()
    thread.join(10)


class Conformance(ModelConformance):
    """Features of the echo server."""

    stream = True
    url = ""
    honours_max_tokens = honours_stop = native_tools = logprobs = True

    @pytest.fixture(autouse=True)
    def _served(self, url: str) -> None:
        type(self).url = url

    def make_model(self) -> Model:
        return OpenAIModel(model="echo", server="vllm", base_url=self.url, stream=self.stream)


class TestStreamed(Conformance):
    """On the wire as a stream, which is the default."""


class TestPlain(Conformance):
    """On the wire as one answer."""

    stream = False


del Conformance


@pytest.mark.parametrize("with_keys", [False, True])
def test_the_package_conforms(with_keys: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for preset in PRESETS.values():
        if preset.key_env:
            monkeypatch.delenv(preset.key_env, raising=False)
            if with_keys:
                monkeypatch.setenv(preset.key_env, "x")
    report = check_package("concertino-openai", manager=PluginManager(Settings()))
    assert [row for row in report.rows if not row.ok] == []
    assert len(report.rows) > (10 if with_keys else 0)


def test_concertino_check_passes() -> None:
    result = CliRunner().invoke(command_line, ["check", "concertino-openai"], standalone_mode=False)
    assert result.exit_code == 0, result.output
