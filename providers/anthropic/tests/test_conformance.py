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
from concertino_anthropic.client import AnthropicModel

from .stand_in import stand_in


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The stand-in, in a loop of its own: the checks make their own loops."""
    ready, done, urls = threading.Event(), threading.Event(), []

    async def serve() -> None:
        async with stand_in() as server:
            urls.append(server.address)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    yield urls[0]
    done.set()
    thread.join(10)


class Conformance(ModelConformance):
    """Features of the stand-in."""

    stream = True
    url = ""
    honours_max_tokens = honours_stop = native_tools = True

    @pytest.fixture(autouse=True)
    def _served(self, url: str) -> None:
        type(self).url = url

    def make_model(self) -> Model:
        return AnthropicModel(
            model="claude-sonnet-5-5", base_url=self.url, key_env="ANTHROPIC_API_KEY", stream=self.stream
        )


class TestStreamed(Conformance):
    """On the wire as a stream, which is the default."""


class TestPlain(Conformance):
    """On the wire as one answer."""

    stream = False


del Conformance


@pytest.mark.slow
@pytest.mark.parametrize("with_key", [False, True])
def test_the_package_conforms(with_key: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_key:
        monkeypatch.delenv("ANTHROPIC_API_KEY")
    report = check_package("concertino-anthropic", manager=PluginManager(Settings()))
    assert [row for row in report.rows if not row.ok] == []
    assert len(report.rows) > (10 if with_key else 0)


@pytest.mark.slow
def test_concertino_check_passes() -> None:
    result = CliRunner().invoke(command_line, ["check", "concertino-anthropic"], standalone_mode=False)
    assert result.exit_code == 0, result.output
