"""Each command once in a hostile folder: nothing that lies there is run, and each refusal names the way to allow it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from concertino.cli import command_line
from concertino.cli.group import OF_PLUGINS, plugin_command

from . import hostile

SECONDS = 10
"""How long a command may work; one that needs longer has read what it was given long before."""
CONSENT = ("trust",)
"""The command that is the consent itself."""
REFUSED = ("run", "call", "tools list", "models show", "pool show", "plugins", "doctor", "mcp list", "mcp call")
TAKEN = {name: command for name in (*OF_PLUGINS, "pool describe") if (command := plugin_command(name)) is not None}
COMMANDS: dict[str, click.Command] = {
    " ".join(path): command
    for name, top in {"": command_line, **TAKEN}.items()
    for path, command in hostile.commands(top, (name,) if name else ())
    if path != CONSENT
}


@pytest.fixture
def mark(clone: Path, tmp_path: Path) -> Path:
    """Where a trap that was stepped into leaves its name; the working folder is full of traps."""
    hostile.fill(clone, tmp_path / "mark")
    return tmp_path / "mark"


def run(arguments: Sequence[str], home: Path) -> subprocess.CompletedProcess[str]:
    """A command, as a user types it."""
    script = Path(sys.executable).with_name("concertino")
    start = [str(script)] if script.exists() else [sys.executable, "-m", "concertino"]
    with subprocess.Popen(
        [*start, *arguments],
        env=hostile.environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            out, errors = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:  # it works on something of its own
            child.kill()
            out, errors = child.communicate()
    return subprocess.CompletedProcess(child.args, child.returncode, out, errors)


def assert_harmless(done: subprocess.CompletedProcess[str], mark: Path) -> None:
    """Nothing of the folder has run, and a refusal says what allows it."""
    assert not mark.exists(), f"{mark.read_text()} has run; {done.stderr}"
    if "not used, because" in done.stderr:
        assert done.returncode == 2
        assert "concertino trust " in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_runs_nothing_of_a_hostile_folder(name: str, mark: Path, tmp_path: Path) -> None:
    command = COMMANDS[name]
    words = [*name.split(), *hostile.arguments(command, pool=False)]
    done = run(words, tmp_path / "home")
    assert_harmless(done, mark)
    if name in REFUSED:
        assert "concertino.toml: not used, because" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, each in COMMANDS.items() if any("--pool" in p.opts for p in each.params)]
)
def test_a_command_about_a_hostile_pool_file_runs_nothing_of_it(
    name: str, mark: Path, clone: Path, tmp_path: Path
) -> None:
    (clone / "concertino.toml").unlink()
    done = run([*name.split(), *hostile.arguments(COMMANDS[name], pool=True)], tmp_path / "home")
    assert_harmless(done, mark)


@pytest.mark.parametrize("words", [("evil",), ("--help",), ("version",), ("tools", "list", "--json"), ("mcp", "list")])
def test_the_first_commands_of_a_visitor_run_nothing(words: tuple[str, ...], mark: Path, tmp_path: Path) -> None:
    done = run(words, tmp_path / "home")
    assert_harmless(done, mark)
    assert done.returncode == (2 if words[0] in ("evil", "tools", "mcp") else 0)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_shown_whatever_the_folder_holds(name: str, mark: Path) -> None:
    done = CliRunner().invoke(command_line, [*name.split(), "--help"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert not mark.exists()


# -- the question ------------------------------------------------------------------------------------------------------


def asked(arguments: Sequence[str], answers: Sequence[str], home: Path) -> tuple[int, str]:
    """A command in a terminal whose questions are answered: its exit code, and what stands there."""
    import pty

    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "concertino", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**hostile.environment(home), "TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(theirs)
    written, waiting, begun = b"", list(answers), time.monotonic()
    while time.monotonic() - begun < 60:
        if waiting and written.count(b"[y/N]: ") > len(answers) - len(waiting):
            os.write(ours, f"{waiting.pop(0)}\n".encode())
        if not select.select([ours], [], [], 0.2)[0]:
            continue
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        written += piece
    os.close(ours)
    return child.wait(60), written.decode()


@pytest.fixture
def starts(clone: Path, tmp_path: Path) -> Path:
    """Settings that start a script, and the mark that it leaves."""
    script = clone / "serve.sh"
    script.write_text(f"#!/bin/sh\necho started >> '{tmp_path / 'mark'}'\n")
    script.chmod(0o755)
    (clone / "concertino.toml").write_text(f'[providers.mcp.servers.x]\ncommand = ["{script}"]\n')
    return tmp_path / "mark"


def test_on_a_terminal_a_command_asks_and_goes_on_after_a_yes(starts: Path, tmp_path: Path) -> None:
    pytest.importorskip("concertino_mcp")
    _, text = asked(["mcp", "list"], ["y"], tmp_path / "home")
    assert "providers.mcp.servers.x.command: " in text
    assert "Trust it as it is now? [y/N]" in text
    assert "started" in starts.read_text()
    _, again = asked(["mcp", "list"], [], tmp_path / "home")
    assert "[y/N]" not in again


@pytest.mark.parametrize("answer", ["n", "", "what\nn"])
def test_any_other_answer_runs_nothing(starts: Path, tmp_path: Path, answer: str) -> None:
    code, text = asked(["mcp", "list"], answer.split("\n"), tmp_path / "home")
    assert code == 2
    assert "concertino trust concertino.toml" in text
    assert not starts.exists()


def test_with_json_nothing_is_asked(starts: Path, tmp_path: Path) -> None:
    code, text = asked(["mcp", "list", "--json"], [], tmp_path / "home")
    assert code == 2
    assert "[y/N]" not in text
    assert '"UntrustedFile"' in text
