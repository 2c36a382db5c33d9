"""Completion: what a key press proposes in bash, zsh and fish, what it costs, and what it never does."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from concertino.cli.seen import seen_file
from concertino.plugins import default_manager

if sys.platform == "win32":
    pytest.skip("shells of POSIX", allow_module_level=True)

Press = Callable[..., list[str]]
FOREIGN = '''
import pathlib
import click
import concertino

pathlib.Path("imported").touch()


@concertino.hookimpl
def concertino_tools():
    pathlib.Path("asked").touch()
    return []


@click.group("sing")
def sing():
    """Sing a song."""


@sing.command("solo")
@click.option("--loud/--soft", help="How.")
@click.option("--key", type=click.Choice(["major", "minor"]))
@click.argument("sheet", type=click.Path())
def solo(**options):
    """Sing alone."""


@concertino.hookimpl
def concertino_cli():
    return [sing]
'''


@pytest.fixture
def press(site: Path) -> Press:
    """`press("run --model ba")`: the names that are proposed there, as fish gets them."""

    def run(line: str, shell: str = "fish", before: str = "") -> list[str]:
        environment = {**os.environ, **asked(line, shell, site)}
        environment["COMP_LINE"] = before + environment["COMP_LINE"]
        done = subprocess.run(
            [sys.executable, "-m", "concertino"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [row.split("\t")[1] for row in done.stdout.splitlines() if row]

    return run


def asked(line: str, shell: str, site: Path) -> dict[str, str]:
    names = {"COMP_LINE": f"concertino {line}", "_CONCERTINO_COMPLETE": f"{shell}_complete"}
    return {**names, "PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "band,foreign"}


@pytest.fixture
def seen(cli: Any) -> None:
    """Completion is in use, and a command has seen the pool."""
    assert cli("completion", "bash").exit_code == 0
    assert cli("pool", "show").exit_code == 0
    cli("doctor")


# -- what is written down ----------------------------------------------------------------------------------------------


def test_without_completion_nothing_is_written_down(cli: Any) -> None:
    cli("pool", "show")
    assert not seen_file().exists()


def test_a_command_writes_down_what_it_has_seen_and_no_more(cli: Any) -> None:
    cli("completion", "bash")
    assert json.loads(seen_file().read_text(encoding="utf-8")).get("shared", {}).get("band", {}).get("members") in (
        None,
        [],
    )
    cli("tools")
    band = json.loads(seen_file().read_text(encoding="utf-8"))["shared"]["band"]
    assert ["tool", "band/add", "Add two numbers."] in band["members"]


def test_what_a_settings_file_sets_up_is_known_there_alone(cli: Any, press: Press) -> None:
    Path("concertino.toml").write_text("[providers.band]\n", encoding="utf-8")
    cli("completion", "bash")
    cli("tools")
    data = json.loads(seen_file().read_text(encoding="utf-8"))
    assert list(data["folders"]) == [str(Path("concertino.toml").absolute())]
    assert "band" not in data["shared"]


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"shared": 3}', '{"shared": {"band": {"members": 7}}}'])
def test_a_damaged_file_gives_fewer_names_and_no_error(press: Press, text: str) -> None:
    seen_file().parent.mkdir(parents=True)
    seen_file().write_text(text, encoding="utf-8")
    assert "parallel-rounds" in press("run --strategy p")
    assert press("call band/") == []


def test_a_cache_that_cannot_be_written_is_said_and_the_script_is_printed(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("taken").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("taken").absolute()))
    done = cli("completion", "zsh")
    assert done.exit_code == 0
    assert done.stdout.startswith("#compdef concertino")
    assert "names will not be kept: Not a directory; set XDG_CACHE_HOME" in done.stderr


# -- what is proposed --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("seen")
def test_names_of_every_kind_are_proposed(press: Press, cli: Any) -> None:
    assert press("tools show ") == ["band/add", "band/nap", "band/fail"]
    assert press("call band/e") == ["band/echo"]
    assert press("models show ") == ["band/lead", "band/parrot"]
    assert press("run --model band/") == ["band/lead", "band/parrot"]
    assert press("run --model gr") == ["groq/"]
    assert press("run --only ")[:2] == ["band/*", "band/add"]
    assert press("run --bind default=band/p") == ["default=band/parrot"]
    assert press("run --strategy ser") == ["serial-calls"]
    assert "max_rounds=" in press("run --set ")
    assert press("run --strategy agent-graph --set do") == ["dom="]
    assert press("run --budget usd=1,to") == ["usd=1,tokens="]
    assert press("run --duplicates re") == ["reuse", "refuse"]


@pytest.mark.usefixtures("seen")
def test_traces_sessions_and_files_are_proposed(press: Press, cli: Any) -> None:
    cli("run", "add", "--model", "band/lead", "--session", "ada")
    (trace,) = Path("runs").glob("*.trace.jsonl")
    run_id = trace.name.removesuffix(".trace.jsonl")
    assert press("traces show ") == ["last", run_id, "runs/"]
    assert press("run --resume runs/") == [str(trace)]
    assert press("sessions show a") == ["ada"]
    assert press("run --session ") == ["ada"]
    for name in ("pool.toml", "other.yaml", "notes.txt", "schema.json"):
        Path(name).touch()
    assert press("run --pool ") == ["other.yaml", "pool.toml", "runs/"]
    assert press("pool diff in") == ["installed"]
    assert press("run --answer-schema s") == ["schema.json"]


def test_models_that_files_declare_are_proposed_without_any_plugin(press: Press) -> None:
    Path("concertino.toml").write_text('pool = "mine.toml"\n[models."openai/fast"]\n', encoding="utf-8")
    Path("mine.toml").write_text('[models."openai/deep"]\n[routers.careful]\n', encoding="utf-8")
    assert press("run --model openai/") == ["openai/fast", "openai/deep"]
    assert press("run --model care") == ["careful"]
    Path("third.toml").write_text('[models."openai/third"]\n', encoding="utf-8")
    assert "openai/third" in press("run --pool third.toml --model openai/t")


def test_commands_of_plugins_are_proposed_with_their_options(cli: Any, install: Any, press: Press) -> None:
    install("foreign", FOREIGN, "sing")
    assert cli("completion", "bash").exit_code == 0
    assert cli("plugins", "--load").exit_code == 0
    Path("imported").unlink()
    Path("asked").unlink(missing_ok=True)
    assert press("si") == ["sing"]
    assert press("sing ") == ["solo"]
    assert press("sing solo --l") == ["--loud"]
    assert press("sing solo --key m") == ["major", "minor"]
    assert not Path("imported").exists(), "a key press imported the plugin"
    assert not Path("asked").exists()


def test_a_plugin_that_comes_later_is_known_once_its_commands_were_looked_for(
    cli: Any, install: Any, press: Press
) -> None:
    cli("completion", "bash")
    install("foreign", FOREIGN, "sing")
    default_manager.cache_clear()
    cli("tools")
    assert press("si") == []
    cli("sing", "--help")
    assert press("sing s") == ["solo"]


def test_a_broken_settings_file_does_not_break_the_start_of_a_shell(cli: Any) -> None:
    Path("concertino.toml").write_text("no TOML", encoding="utf-8")
    default_manager.cache_clear()
    done = cli("completion", "bash")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "_concertino_completion" in done.stdout


def test_variables_before_the_command_do_not_count(press: Press) -> None:
    assert "parallel-rounds" in press("run --strategy p", before="NO_COLOR=1 ")


def test_a_key_press_asks_no_plugin_and_starts_nothing(install: Any, press: Press) -> None:
    install("foreign", FOREIGN, "sing")
    for line in ("", "run --model ", "call ", "tools show ", "sing ", "pool ", "bench ", "run --shortlist "):
        press(line)
    assert not Path("imported").exists()


def test_a_name_that_would_move_the_cursor_or_end_the_line_is_not_proposed(press: Press, cli: Any) -> None:
    cli("completion", "bash")
    data = json.loads(seen_file().read_text(encoding="utf-8"))
    names = [["tool", "a/\x1b[2J", ""], ["tool", "a/x\ny", ""], ["tool", "a/$(touch bad)", "b\tc\n"]]
    data["shared"] = {"a": {"members": names}}
    seen_file().write_text(json.dumps(data), encoding="utf-8")
    assert press("call a/") == ["a/$(touch bad)"]
    assert press("call a/", shell="bash") == ["'a/$(touch bad)'"]


# -- what it costs -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("line", ["", "run --model ", "call ", "traces show ", "bench run --", "run --set "])
def test_a_key_press_takes_less_than_0_3_seconds_of_a_processor(site: Path, line: str) -> None:
    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "concertino"]
        subprocess.run(command, env={**os.environ, **asked(line, "bash", site)}, stdout=subprocess.DEVNULL, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(once() for _ in range(5)) < 0.3


# -- the shells themselves ---------------------------------------------------------------------------------------------

BASH = """
source {script}
complete() {{
    COMP_LINE="$1"
    COMP_POINT=${{#COMP_LINE}}
    _concertino_completion concertino
    printf '%s\\n' "${{COMPREPLY[@]}}"
}}
complete "concertino run --model band/l"
complete "concertino run --bind default=band/p"
complete "concertino call --only=band/e"
"""
FISH = """
source {script}
complete -C "concertino run --model band/l"
complete -C "concertino run --bind default=band/p"
"""
ZSH = """
autoload -Uz compinit && compinit -u -D
source {script}
compadd() {{ local -a shown; while (( $# )); do case $1 in -a) print -l -- "${{(@P)2}}"; shift;; esac; shift; done }}
words=(concertino run --model band/l); CURRENT=4; PREFIX=band/l; _concertino_completion
words=(concertino run --bind default=band/p); CURRENT=4; PREFIX=default=band/p; _concertino_completion
"""


@pytest.mark.slow
@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(
    ("shell", "program", "proposed"),
    [
        ("bash", BASH, ["band/lead", "band/parrot", "band/echo"]),
        ("zsh", ZSH, ["band/lead", "default=band/parrot"]),
        ("fish", FISH, ["band/lead", "default=band/parrot"]),
    ],
)
def test_the_script_of_a_shell_completes_in_that_shell(
    cli: Any, site: Path, tmp_path: Path, shell: str, program: str, proposed: list[str]
) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(cli("completion", shell).stdout, encoding="utf-8")
    command = tmp_path / "bin" / "concertino"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m concertino "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "band", "HOME": str(tmp_path)}
    environment["PATH"] = f"{command.parent}{os.pathsep}{environment['PATH']}"
    text = program.format(script=script)
    done = subprocess.run([found], input=text, env=environment, capture_output=True, text=True, timeout=60)
    lines = [line.split("\t")[0] for line in done.stdout.splitlines() if line.strip()]
    assert lines == proposed, done.stderr


def test_json_says_where_the_script_goes(cli: Any) -> None:
    data = json.loads(cli("completion", "fish", "--json").stdout)
    assert data["shell"] == "fish"
    assert data["install"].startswith("concertino completion fish > ~/.config/fish/")


def test_without_a_shell_it_is_that_of_the_login(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert cli("completion").stdout.startswith("#compdef")
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    done = cli("completion")
    assert (done.exit_code, done.stderr) == (
        2,
        "Error: which shell? give one: concertino completion bash, zsh or fish\n",
    )
