"""The commands as a whole: what `--help` imports, unknown commands, commands of plugins, exit codes, errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from concertino.cli import command_line
from concertino.cli.group import COMMANDS, OF_PLUGINS, PluginCommand
from concertino.plugins import default_manager

HEAVY = {
    "asyncio",
    "pydantic",
    "jsonschema",
    "jsonschema_rs",
    "tenacity",
    "rich",
    "yaml",
    "pluggy",
    "concertino.executor",
    "concertino.runs.orchestrator",
    "concertino.pool.pool",
    "concertino.plugins.manager",
    "concertino.schema",
}


def test_help_imports_no_command_and_nothing_heavy() -> None:
    program = (
        "import sys\nfrom concertino.cli import command_line\n"
        "try: command_line(['--help'])\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = set(done.stderr.split())
    commands = {place.target.partition(":")[0] for place in COMMANDS.values()}
    assert not modules & (HEAVY | commands)
    assert all(f"  {name}  " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_imports_nothing_heavy_and_agrees_with_the_table(name: str) -> None:
    program = (
        "import sys\nfrom concertino.cli import command_line\n"
        f"try: command_line([{name!r}, '--help'])\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(done.stderr.split()) & (HEAVY - {"asyncio"})
    assert done.stdout.startswith(f"Usage: concertino {name}")


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command that does something, as the words that call it."""
    if not isinstance(command, click.Group):
        return [path]
    context = click.Context(command)
    found = [
        leaf
        for name in command.list_commands(context)
        if (inner := command.get_command(context, name)) is not None
        for leaf in leaves(inner, (*path, name))
    ]
    return [path, *found] if command.invoke_without_command else found


@pytest.mark.parametrize("path", leaves(command_line), ids=" ".join)
def test_every_command_takes_json_and_debug_and_says_what_its_json_is(
    cli: Callable[..., Any], path: tuple[str, ...]
) -> None:
    text = cli(*path, "--help").stdout
    assert "--json" in text
    assert "--debug" in text
    if path not in (("tools",), ("agents",), ("models",)):  # `list` by itself, whose help is that of `list`
        assert "JSON" in text.partition("Options:")[0]


def test_an_unknown_command_is_wrong_usage_and_names_a_near_one(cli: Callable[..., Any]) -> None:
    done = cli("tracse")
    assert done.exit_code == 2
    assert "there is no command 'tracse'; did you mean 'traces'?" in done.stderr


def test_an_unknown_command_names_a_near_one_of_a_plugin(cli: Callable[..., Any]) -> None:
    assert "there is no command 'tnue'; did you mean 'tune'?" in cli("tnue").stderr


def test_a_command_that_is_not_installed_names_its_distribution(cli: Callable[..., Any]) -> None:
    assert (
        "there is no command 'train'; it comes with concertino-train: pip install 'concertino[train]'"
        in cli("train").stderr
    )


def test_an_unknown_command_names_the_broken_plugins_that_may_have_had_it(cli: Any, install: Any) -> None:
    install("broken", "raise RuntimeError('no')", "sing")
    done = cli("sing")
    assert done.exit_code == 2
    assert "its plugin cannot be used: broken (RuntimeError: no" in done.stderr


def test_an_unknown_command_imports_no_plugin(cli: Any, install: Any, tmp_path: Path) -> None:
    install("eager", f"open({str(tmp_path / 'imported')!r}, 'w')")
    assert cli("sing").exit_code == 2
    assert cli("--help").exit_code == 0
    assert cli("tune").exit_code == 0
    assert not (tmp_path / "imported").exists()


def test_the_help_lists_the_commands_of_plugins_too(cli: Callable[..., Any]) -> None:
    text = cli("--help").stdout.partition("Commands of plugins:")[2]
    assert re.search(r"^  tune +Of acme-band\.$", text, re.M)
    for name, command in OF_PLUGINS.items():
        assert (re.search(rf"^  {name} ", text, re.M) is not None) == command.installed()


def test_the_help_says_what_brings_the_commands_that_are_not_installed(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PluginCommand, "installed", lambda command: False)
    text = " ".join(cli("--help").stdout.split())
    assert "bench (pip install 'concertino[bench]'), train (pip install 'concertino[train]')" in text


@pytest.mark.parametrize(("words", "extra"), [(("pool", "describe"), "bench"), (("traces", "html"), "view")])
def test_a_command_of_ours_inside_a_group_says_what_brings_it(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], extra: str
) -> None:
    monkeypatch.setattr("concertino.cli.group.plugin_command", lambda name: None)
    done = cli(*words)
    assert done.exit_code == 2
    assert f"concertino[{extra}]" in done.stderr


def test_a_broken_plugin_or_setting_leaves_the_help_as_it_is(cli: Any, install: Any) -> None:
    install("broken", "raise RuntimeError('no')")
    assert cli("--help").exit_code == 0
    Path("concertino.toml").write_text("no TOML", encoding="utf-8")
    default_manager.cache_clear()
    assert cli("--help").exit_code == 0


def test_no_command_at_all_is_answered_with_the_help(cli: Callable[..., Any]) -> None:
    for group in ((), ("traces",), ("pool",)):
        done = cli(*group)
        assert done.exit_code == 2
        assert done.stderr.startswith("Usage: concertino")


def test_a_command_of_a_plugin_is_found_by_its_name(cli: Callable[..., Any]) -> None:
    assert cli("tune").stdout == "la\n"


def test_a_plugin_cannot_replace_a_built_in_command(cli: Any, install: Any) -> None:
    install(
        "rude",
        "import click, concertino\n@concertino.hookimpl\ndef concertino_cli(): return [click.Command('version')]",
        "version",
    )
    assert cli("version").stdout.startswith("concertino ")


def test_the_version_is_that_of_the_distribution(cli: Callable[..., Any]) -> None:
    from importlib.metadata import version

    assert json.loads(cli("version", "--json").stdout)["concertino"] == version("concertino")


def test_a_fault_of_a_command_shows_its_traceback_only_with_debug(cli: Any, install: Any) -> None:
    install(
        "bug",
        "import click, concertino\n@click.command('bug')\ndef bug(): raise KeyError('gone')\n"
        "@concertino.hookimpl\ndef concertino_cli(): return [bug]",
        "bug",
    )
    plain = cli("bug")
    assert plain.exit_code == 1
    assert "Traceback" not in plain.stderr
    assert "unexpected KeyError: 'gone'" in plain.stderr
    assert "Traceback" in cli("--debug", "bug").stderr


def test_errors_are_json_where_json_is_asked_for(cli: Callable[..., Any]) -> None:
    done = cli("models", "show", "tenor", "--json")
    assert done.exit_code == 2
    error = json.loads(done.stderr)["error"]
    assert error["type"] == "PoolError"
    assert "'tenor'" in error["message"]
    assert json.loads(cli("run", "q", "--nonsense", "--json").stderr)["error"]["type"] == "UsageError"


def test_what_stands_after_two_dashes_is_no_option_of_ours(cli: Callable[..., Any]) -> None:
    done = cli("models", "show", "--", "--json")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")


def test_the_module_is_the_command(process: Any) -> None:
    done = process("call", "band/add", '{"a": 1, "b": 2}')
    assert (done.returncode, done.stdout) == (0, "3\n")
