"""The distribution: hooks, settings, doctor, command line, and what `concertino check` says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import concertino as ct
import concertino_mcp
import pytest
from click.testing import CliRunner
from concertino.executor.isolation.child_process import TAIL_BYTES
from concertino.plugins import PluginManager
from concertino.testing import ToolConformance, check_package
from concertino_mcp import servers as published
from concertino_mcp.catalogue import catalogue
from concertino_mcp.cli import mcp
from concertino_mcp.members import agent, content
from concertino_mcp.members import tool as tools
from concertino_mcp.sessions import background as loop
from concertino_mcp.sessions import connection
from concertino_mcp.sessions import lifecycle as life
from concertino_mcp.settings import McpServerSettings
from concertino_mcp.transport import messages as pipes
from concertino_mcp.transport import stdio as process

from .conftest import BARE, bare

README = Path(__file__).parents[1] / "README.md"


def _write(folder: Path, **servers: dict[str, Any]) -> None:
    """A `concertino.toml` with these servers."""
    import tomli_w

    (folder / "concertino.toml").write_text(tomli_w.dumps({"providers": {"mcp": {"servers": servers}}}))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with three servers."""
    _write(
        tmp_path,
        good=bare(include=["echo", "die_writing"]),
        helper={**bare(include=["echo"]), "as": "agent"},
        gone={"command": ["no-such-program"]},
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "concertino", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_every_public_name_is_there() -> None:
    for name in concertino_mcp.__all__:
        assert getattr(concertino_mcp, name) is not None


def test_importing_the_plugin_does_not_import_the_sdk_of_mcp() -> None:
    code = (
        "import sys, concertino_mcp; "
        "print([m for m in sys.modules if m.startswith(('mcp', 'pydantic', 'httpx2', 'click'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_without_servers_nothing_is_published_and_nothing_starts() -> None:
    settings = ct.ProviderSettings()
    assert concertino_mcp.concertino_tools(settings) == []
    assert concertino_mcp.concertino_agents(settings) == []
    assert concertino_mcp.concertino_doctor(settings) == []
    assert loop._background is None


def test_declared_servers_are_members_of_the_installed_pool(project: Path) -> None:
    # Warnings go to the standard logging, which prints them where a program has set it up.
    code = "import logging, concertino as ct; logging.basicConfig(); print(sorted(m.name for m in {}))"
    code = code.format("ct.Pool.installed('mcp/*').members")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "['mcp/good.die_writing', 'mcp/good.echo', 'mcp/helper']"
    assert "the MCP server 'gone' is left out: there is no program 'no-such-program' in PATH" in done.stderr


def test_a_pool_file_brings_servers_of_its_own(tmp_path: Path) -> None:
    import tomli_w

    (tmp_path / "here.py").write_text(BARE.read_text())
    server = {"command": [sys.executable, "-S", "here.py", "good"], "include": ["echo"], "start_timeout": 20.0}
    pool = {"members": ["mcp/mine.echo"], "providers": {"mcp": {"servers": {"mine": server}}}}
    (tmp_path / "pool.toml").write_text(tomli_w.dumps(pool))
    members = ct.Pool.load(tmp_path / "pool.toml").members
    assert [member.name for member in members] == ["mcp/mine.echo"]


@pytest.mark.slow
def test_a_wrong_setting_is_told_with_its_file(tmp_path: Path) -> None:
    _write(tmp_path, files={"comand": ["x"]})
    done = _run(tmp_path, "doctor")
    said = " ".join(done.stdout.split())
    assert "concertino.toml: providers.mcp" in said
    assert "server 'files': unknown key 'comand'; did you mean 'command'?" in said


def test_the_doctor_says_what_cannot_be_used_and_why(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MCP_TEST_ABSENT", raising=False)
    settings = ct.ProviderSettings(
        {
            "servers": {
                "good": bare("bombs"),
                "gone": {"command": ["no-such-program"]},
                "keyless": bare(env_from=["MCP_TEST_ABSENT"]),
                "nobody": {"url": "http://127.0.0.1:9/mcp"},
            }
        }
    )
    found = concertino_mcp.concertino_doctor(settings)
    by_subject = {finding.subject: finding for finding in found}
    assert by_subject["MCP server good"].level == "ok"
    assert by_subject["MCP server good"].text.startswith("2 tools in ")
    assert by_subject["MCP server good, tool remote"].level == "warning"
    assert by_subject["MCP server gone"].step == "install it, or correct `command`"
    assert by_subject["MCP server keyless"].step == "set it where concertino runs"
    assert by_subject["MCP server nobody"].step == "check the address and the network"
    assert [by_subject[f"MCP server {name}"].level for name in ("gone", "keyless", "nobody")] == ["error"] * 3


@pytest.mark.slow
def test_the_doctor_on_the_command_line_shows_it(project: Path) -> None:
    done = _run(project, "doctor")
    assert "MCP server gone" in done.stdout
    assert "there is no program 'no-such-program' in PATH" in done.stdout


def test_the_list_names_servers_tools_and_reasons(project: Path) -> None:
    done = _run(project, "mcp", "list")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("good  stdio, as tools  2 tools  (bare 0, MCP 2025-11-25, ")
    assert lines[1:3] == ["  mcp/good.echo", "  mcp/good.die_writing  writes"]
    assert lines[-1] == "gone  CANNOT BE USED  there is no program 'no-such-program' in PATH"
    rows = json.loads(_run(project, "mcp", "list", "--json").stdout)
    assert [(row["server"], row["as"], len(row["tools"])) for row in rows] == [
        ("good", "tools", 2),
        ("helper", "agent", 1),
        ("gone", "tools", 0),
    ]


def test_a_tool_is_called_by_hand(project: Path) -> None:
    done = _run(project, "mcp", "call", "good", "echo", '{"text": "hi"}')
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["content"] == "hi"
    done = _run(project, "mcp", "call", "good", "good.die_writing", '{"text": "hi"}')
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "unknown_outcome"


@pytest.mark.parametrize(
    ("server", "tool", "status", "message"),
    [
        ("good", "echa", 2, "there is no tool 'echa'; did you mean 'echo'?"),
        ("god", "echo", 2, "there is no MCP server 'god'; did you mean 'good'?"),
        ("gone", "echo", 1, "cannot be used"),
    ],
)
def test_a_call_by_hand_of_what_is_not_there_says_what_is(
    project: Path, monkeypatch: pytest.MonkeyPatch, server: str, tool: str, status: int, message: str
) -> None:
    declared = PluginManager().settings.providers["mcp"]
    monkeypatch.setattr("concertino_mcp.cli._settings", lambda: declared)
    done = CliRunner().invoke(mcp, ["call", server, tool])
    assert (done.exit_code, message in done.output) == (status, True), done.output


def test_the_list_without_servers_says_how_to_declare_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("concertino_mcp.cli._settings", lambda: None)
    done = CliRunner().invoke(mcp, ["list"])
    assert done.exit_code == 0
    assert "[providers.mcp.servers.NAME]" in done.output


@pytest.mark.slow
def test_concertino_check_looks_at_the_tools_of_declared_servers(tmp_path: Path) -> None:
    _write(tmp_path, good=bare(include=["echo"]))
    code = (
        "from concertino.testing import check_package; report = check_package('concertino-mcp'); "
        "print([(r.check, r.detail, r.subject) for r in report.rows if r.outcome == 'failed'])"
    )
    assert check_package("concertino-mcp").rows[0].check == "it_loads"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("'mcp/good.echo'") == done.stdout.count("('"), done.stdout
    assert "it_loads" not in done.stdout


def test_the_readme_tells_every_key() -> None:
    from concertino_mcp.settings import KEYS

    text = README.read_text(encoding="utf-8")
    told = text.partition("<!-- --8<-- [start:options] -->")[2].partition("<!-- --8<-- [end:options] -->")[0]
    assert [key for key in KEYS if f"| `{key}` |" not in told] == []


def test_the_readme_tells_the_bounds_that_hold() -> None:
    text = README.read_text(encoding="utf-8")
    told = text.partition("<!-- --8<-- [start:bounds] -->")[2].partition("<!-- --8<-- [end:bounds] -->")[0]
    waits = ", ".join(f"{life.FIRST_WAIT * 2**number:g} s" for number in range(life.STARTS - 2))
    true = [
        f"`timeout`, {McpServerSettings.timeout:g} s",
        f"`start_timeout`, {McpServerSettings.start_timeout:g} s",
        f"`idle_timeout`, {McpServerSettings.idle_timeout:g} s",
        f"{life.ATTEMPTS} attempts",
        f"`Retry-After` up to {life.LONGEST_WAIT:g} s",
        f"| {waits} |",
        f"up to {life.PATIENCE:g} s for a start",
        f"{life.STARTS} failures in a row",
        f"one start in {life.REST:g} s",
        f"| {published.HOOK_SECONDS:g} s |",
        f"| {process.GRACE:g} s, then {process.GRACE:g} s |",
        f"| {loop._CLOSING_SECONDS:g} s | `close()`",
        f"| {pipes.MESSAGE_BYTES // 2**20} MiB | one message",
        f"| {8 * pipes.MESSAGE_BYTES // 2**20} MiB | a line",
        f"| {pipes.WAITING_BYTES // 2**20} MiB | what waits to be read",
        f"{pipes.STRAYS} lines",
        f"{TAIL_BYTES // 1024} KiB",
        f"{connection.PAGES} pages, {connection.LISTED:,} tools",
        f"{catalogue.MAX_TOOLS:,} tools",
        f"{ct.ToolSpec.max_chars:,} characters",
        f"{agent.SHOWN:,} for the model of an agent",
        f"{content.ERROR_CHARS:,} characters",
        f"{tools.PROGRESS_CHARS} characters | events of progress",
        f"{agent.TURNS} turns of {agent.CALLS} calls",
    ]
    assert [bound for bound in true if bound not in told] == []


class TestEcho(ToolConformance):
    """A tool of a server without manners, held to conformance."""

    examples = (({"text": "a"}, "a"), ({"text": "ü"}, "ü"))
    rejected = ({"text": 3},)

    @pytest.fixture(autouse=True)
    def _spec(self) -> None:
        type(self).spec = concertino_mcp.server("conform", **bare(include=["echo"]))[0]

    @pytest.mark.xfail(reason="the server's own schema admits further arguments, and it is not changed here")
    def test_an_unknown_argument_is_refused(self) -> None:
        super().test_an_unknown_argument_is_refused()

    @pytest.mark.xfail(reason="the server's own schema describes no parameter, and it is not changed here")
    def test_every_parameter_is_described(self) -> None:
        super().test_every_parameter_is_described()


class TestWait(ToolConformance):
    """One that takes long and can fail."""

    examples = (({"text": "0.01"}, "waited"),)
    rejected = ({"text": 3},)
    slow: ClassVar = {"text": "5"}

    @pytest.fixture(autouse=True)
    def _spec(self) -> None:
        type(self).spec = concertino_mcp.server("conform", **bare(include=["wait"]))[0]

    @pytest.mark.xfail(reason="the server's own schema admits further arguments, and it is not changed here")
    def test_an_unknown_argument_is_refused(self) -> None:
        super().test_an_unknown_argument_is_refused()

    @pytest.mark.xfail(reason="the server's own schema describes no parameter, and it is not changed here")
    def test_every_parameter_is_described(self) -> None:
        super().test_every_parameter_is_described()
