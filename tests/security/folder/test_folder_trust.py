"""What is remembered of a trusted file: any change of it, or of what it names, is noticed; nobody else can write it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from concertino import UsageError
from concertino.cli import command_line
from concertino.core import trust
from concertino.core.settings import load_settings
from concertino.core.trust import UntrustedFile

SERVER = '[providers.mcp.servers.x]\ncommand = ["python", "server.py", "--data=data.json"]\ncwd = "work"\n'


def run(*arguments: str) -> Result:
    """A command, without a terminal."""
    return CliRunner().invoke(command_line, list(arguments))


@pytest.fixture
def settings(clone: Path) -> Path:
    """Trusted settings, which start a script with a module beside it, data, and a folder."""
    (clone / "concertino.toml").write_text(SERVER)
    (clone / "server.py").write_text("import beside")
    (clone / "beside.py").write_text("import further\nfrom parts import deep")
    (clone / "further.py").write_text("x = 1")
    hide(clone / "parts" / "deep" / "one.py", "x = 1")
    (clone / "data.json").write_text("{}")
    (clone / "work" / "deep").mkdir(parents=True)
    for number in range(600):
        (clone / "work" / "deep" / f"{number}.txt").write_text("")
    assert run("trust").exit_code == 0
    load_settings()
    return clone / "concertino.toml"


def hide(file: Path, text: str = "") -> None:
    """Write a file and its folders."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def swap_link(clone: Path) -> None:
    """Put a link to another script in the place of the script."""
    (clone / "other.txt").write_text("import beside")
    (clone / "server.py").unlink()
    (clone / "server.py").symlink_to("other.txt")
    (clone / "other.txt").write_text("import os")


def grow(clone: Path) -> None:
    """Write behind what a large file holds, and set its times back."""
    before = (clone / "work" / "big").stat()
    with (clone / "work" / "big").open("r+b") as file:
        file.write(b"x")
    os.utime(clone / "work" / "big", ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], object]] = {
    "the file": lambda clone: (clone / "concertino.toml").write_text(SERVER + "[providers.mcp.servers.x.env]\nA = 'b'"),
    "a comment in the file": lambda clone: (clone / "concertino.toml").write_text(SERVER + "# x"),
    "the script": lambda clone: (clone / "server.py").write_text("import os"),
    "the module beside the script": lambda clone: (clone / "beside.py").write_text("import os"),
    "a module that hides one of Python": lambda clone: (clone / "json.py").write_text(""),
    "a module that hides an installed one": lambda clone: (clone / "click.py").write_text(""),
    "a package that hides one of Python": lambda clone: hide(clone / "asyncio" / "__init__.py"),
    "a module that a module beside the script imports": lambda clone: (clone / "further.py").write_text("x = 2"),
    "a file of a package beside the script": lambda clone: hide(clone / "parts" / "deep" / "one.py"),
    "the value of an option": lambda clone: (clone / "data.json").write_text("[]"),
    "a file deep in a folder": lambda clone: (clone / "work" / "deep" / "599.txt").write_text("x"),
    "a new file in a folder": lambda clone: (clone / "work" / "deep" / "600.txt").write_text("x"),
    "a file that is gone": lambda clone: (clone / "work" / "deep" / "0.txt").unlink(),
    "a name": lambda clone: (clone / "work" / "deep" / "0.txt").rename(clone / "work" / "deep" / "z.txt"),
    "a link": swap_link,
    "a large file of the same size and time": grow,
    "a program that comes to be": lambda clone: (clone / "python").write_text("#!/bin/sh"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_asked_about_again(settings: Path, clone: Path, change: Callable[[Path], object]) -> None:
    with (clone / "work" / "big").open("wb") as file:
        file.truncate(9 << 20)
    assert run("trust").exit_code == 0
    load_settings()
    change(clone)
    trust._allowed.clear()  # a new process
    with pytest.raises(UntrustedFile, match="it changed since it was trusted"):
        load_settings()
    assert json.loads(run("trust", "--list", "--json").stdout)[0]["changed"] is True
    assert run("trust").exit_code == 0
    load_settings()


def test_a_program_that_comes_to_lie_beside_a_script_that_does_not_mention_it_is_not_asked_about(
    settings: Path, clone: Path
) -> None:
    (clone / "my_own_program.py").write_text("print('hello')")
    trust._allowed.clear()
    load_settings()


def test_a_file_that_changes_while_a_program_runs_is_noticed(settings: Path) -> None:
    settings.write_text(SERVER.replace("server.py", "beside.py"))
    with pytest.raises(UntrustedFile):
        load_settings()


def test_trust_does_not_depend_on_how_the_file_is_named_or_from_where(
    settings: Path, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "way").symlink_to(clone)
    monkeypatch.chdir(tmp_path / "outside")
    assert run("trust", str(tmp_path / "way" / "concertino.toml")).exit_code == 0
    monkeypatch.chdir(clone)
    trust._allowed.clear()
    load_settings()
    monkeypatch.chdir(tmp_path / "outside")
    assert json.loads(run("trust", "--list", "--json").stdout)[0]["trusted"] is True


def test_a_script_of_the_same_name_in_another_working_folder_is_another_script(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone / "pool.toml").write_text(SERVER)
    assert run("trust", "pool.toml").exit_code == 0
    (tmp_path / "outside" / "server.py").write_text("import evil")
    monkeypatch.chdir(tmp_path / "outside")
    assert "it changed since it was trusted" in run("pool", "show", "--pool", "../clone/pool.toml").stderr


def test_trust_is_of_a_place(settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clone").rename(tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(UntrustedFile):
        load_settings()


def test_a_file_trusted_as_one_kind_is_not_trusted_as_another(clone: Path) -> None:
    text = '[models."openai/x"]\nbase_url = "http://127.0.0.1:9"'
    (clone / "some.toml").write_text(text)
    assert run("trust", "some.toml", "--as", "document").exit_code == 0
    done = run("pool", "show", "--pool", "some.toml")
    assert done.exit_code == 2
    assert "it changed since it was trusted" in done.stderr


def test_the_command_that_is_named_trusts_a_file_whose_kind_is_not_seen(clone: Path) -> None:
    (clone / "some.toml").write_text("sources = ['x']\n[rollout]\n")
    with pytest.raises(UntrustedFile) as raised:
        trust.require(Path("some.toml"), {"sources": ["x"], "rollout": {}}, "pool", trusted=False)
    named = str(raised.value).rpartition("concertino ")[2].split()
    assert run(*named).exit_code == 0
    trust.require(Path("some.toml"), {"sources": ["x"], "rollout": {}}, "pool", trusted=False)


def test_a_folder_of_too_many_files_is_refused_with_what_to_do(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "MOST_FILES", 300)
    done = run("trust")
    assert done.exit_code == 2
    assert "more than 300 files" in done.stderr
    assert "CONCERTINO_TRUST=all" in done.stderr


def test_a_link_that_leads_back_and_a_pipe_are_covered_without_waiting(clone: Path) -> None:
    (clone / "concertino.toml").write_text(SERVER.replace("server.py", "pipe"))
    os.mkfifo(clone / "pipe")
    (clone / "work").mkdir()
    (clone / "work" / "back").symlink_to("..")
    assert run("trust").exit_code == 0
    load_settings()


def test_only_the_user_can_read_and_write_what_is_remembered(settings: Path, tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "home" / "trust.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"trusted": 3}', "\0", "[" * 100_000], ids=range(6))
def test_a_damaged_memory_trusts_nothing(settings: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "home" / "trust.json").write_text(text)
    trust._allowed.clear()
    with pytest.raises(UsageError, match="trust your files again"):
        load_settings()


def test_a_memory_that_others_can_write_trusts_nothing(settings: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "trust.json").chmod(0o666)
    trust._allowed.clear()
    with pytest.raises(UsageError, match="others can write it"):
        load_settings()


def test_a_home_that_would_lie_in_the_working_folder_is_refused(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONCERTINO_HOME", "home")
    with pytest.raises(UsageError, match="expected an absolute path"):
        load_settings()


def test_a_relative_folder_of_the_desktop_s_settings_is_ignored(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONCERTINO_HOME")
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    assert trust.home() == Path.home() / ".config" / "concertino"


@pytest.mark.parametrize("value", ["1", "yes", "All", "none", "all "])
def test_another_word_than_all_is_an_error(settings: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CONCERTINO_TRUST", value)
    with pytest.raises(UsageError, match="expected all"):
        load_settings()


def test_all_trusts_everything(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clone / "concertino.toml").write_text(SERVER)
    monkeypatch.setenv("CONCERTINO_TRUST", "all")
    assert load_settings().providers["mcp"]


def test_a_file_that_is_named_is_trusted(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clone / "concertino.toml").write_text(SERVER)
    done = run("--config", "concertino.toml", "plugins", "--json")
    assert done.exit_code == 0
    assert "CONCERTINO_CONFIG" not in os.environ
    monkeypatch.setenv("CONCERTINO_CONFIG", "concertino.toml")
    assert load_settings().providers["mcp"]


def test_what_is_trusted_is_shown_and_forgotten(settings: Path) -> None:
    shown = run("trust", "concertino.toml")
    assert "providers.mcp.servers.x.command: python server.py --data=data.json" in shown.stdout
    assert "trusted" in run("trust", "--list").stdout
    assert run("trust", "--forget", "concertino.toml").exit_code == 0
    with pytest.raises(UntrustedFile, match="nobody on this machine has trusted it"):
        load_settings()
    done = run("trust", "--forget", "concertino.toml")
    assert done.exit_code == 2
    assert "concertino trust --list" in done.stderr


def test_who_trusts_a_file_sees_all_that_it_sets_a_line_each(clone: Path) -> None:
    servers = "".join(f'[providers.mcp.servers.s{number}]\ncommand = ["run{number}"]\n' for number in range(40))
    (clone / "concertino.toml").write_text(servers + '[providers.mcp.servers.t]\ncommand = ["a\\n  b: c"]\n')
    lines = run("trust").stdout.splitlines()
    assert len(lines) == 42
    assert "  providers.mcp.servers.t.command: a\\n  b: c" in lines


def test_what_a_file_builds_on_is_shown_and_trusted_with_it(clone: Path) -> None:
    (clone / "concertino.toml").write_text('pool = "pool.toml"')
    (clone / "pool.toml").write_text('[models."openai/x"]\nbase_url = "http://127.0.0.1:9/v1"')
    assert "models.openai/x.base_url: http://127.0.0.1:9/v1" in run("trust").stdout
    assert run("pool", "show").exit_code == 0
    (clone / "top.yaml").write_text("base: low.yaml")
    (clone / "low.yaml").write_text("base: top.yaml\npool: {file: pool.toml}\nrollout: {backend: vllm}")
    shown = run("trust", "top.yaml").stdout
    assert shown.count("trusted: ") == 3
    assert "rollout.backend: starts a server of vllm" in shown


def test_a_harmless_file_needs_no_trust_and_says_so(clone: Path) -> None:
    (clone / "concertino.toml").write_text('pool = "pool.toml"')
    assert "needs no trust" in run("trust").stdout


def test_what_init_writes_is_trusted_from_the_start(clone: Path) -> None:
    pytest.importorskip("concertino_toy")
    assert run("init", "--yes", "--no-probe", "--model", "openai/x", "--member", "toy/*").exit_code == 0
    assert run("pool", "show").exit_code == 0
