"""Bad input, across all commands: one line says what was given, what was expected and what to do; nothing has run.

Exit code 2 for wrong usage, 1 where the run, the call or the check failed. No traceback, nobody blamed but the input.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BINARY = bytes(range(128, 256))
LEAD = ["--model", "band/lead"]


@pytest.fixture(autouse=True)
def files() -> None:
    """Things that are not what a command expects."""
    Path("bin.dat").write_bytes(BINARY)
    Path("bin.toml").write_bytes(BINARY)
    Path("folder").mkdir()
    Path("empty.jsonl").touch()
    Path("other.jsonl").write_text('{"question": 1}\n', encoding="utf-8")
    Path("list.json").write_text("[1]", encoding="utf-8")
    Path("half.json").write_text('{"type": ', encoding="utf-8")
    Path("mine.toml").write_text('members = ["band/*"]\n', encoding="utf-8")
    Path("roles.toml").write_text("[roles]\norchestrator = 3\n", encoding="utf-8")


USAGE: dict[str, tuple[list[str], str]] = {
    # run
    "a pool file that is a folder": (["run", "add", "--pool", "folder"], "folder: it is a folder; expected a file"),
    "a pool file of bytes": (["run", "add", "--pool", "bin.toml"], "bin.toml: cannot be read: it is not UTF-8 text"),
    "a misspelt pool file": (
        ["run", "add", "--pool", "min.toml"],
        "min.toml: file not found; did you mean 'mine.toml'?",
    ),
    "a role that is a number": (["run", "add", "--pool", "roles.toml"], "roles: 'orchestrator' = 3; expected a text"),
    "an empty model": (["run", "add", "--model", " "], "--model is empty; expected provider/name"),
    "an empty pattern": (["run", "add", *LEAD, "--only", ""], "a pattern is empty; expected a name, or 'provider/*'"),
    "a limit without a value": (["run", "add", *LEAD, "--budget", "usd"], "expected NAME=NUMBER with NAME one of"),
    "a time of nothing": (["run", "add", *LEAD, "--budget", "seconds=0"], "allows nothing; leave it out for no limit"),
    "a truth for a number": (
        ["run", "add", *LEAD, "--set", "max_rounds=true"],
        "--set max_rounds=true: expected a whole number, such as 12",
    ),
    "a workflow that is not there": (
        ["run", "add", *LEAD, "--strategy", "no.toml"],
        "no.toml: cannot be read: No such",
    ),
    "a ranking without a provider": (["run", "add", *LEAD, "--shortlist", "best"], "such as 'scorer/best'"),
    "traces in a file": (
        ["run", "add", *LEAD, "--trace", "bin.dat"],
        "the run cannot be recorded in bin.dat: File exists; record it elsewhere with --trace FOLDER, or not at all "
        "with --no-trace",
    ),
    "a recording in a folder": (
        ["run", "add", *LEAD, "--no-trace", "--record", "folder"],
        "--record folder: cannot be written: Is a directory; give another file",
    ),
    "a recording below a file": (
        ["run", "add", *LEAD, "--no-trace", "--record", "bin.dat/new/rec.jsonl"],
        "--record bin.dat/new/rec.jsonl: cannot be written: Not a directory; give another file",
    ),
    "a replay of nothing": (
        ["run", "add", *LEAD, "--replay", "rec.jsonl"],
        "--replay rec.jsonl: recording not found; make it with the same command and --record rec.jsonl",
    ),
    "a replay of bytes": (
        ["run", "add", *LEAD, "--replay", "bin.dat"],
        "bin.dat: the recording cannot be read: it is not UTF-8 text",
    ),
    "a replay of something else": (["run", "add", *LEAD, "--replay", "other.jsonl"], "other.jsonl:1: this line of the"),
    "an attachment that is not there": (
        ["run", "add", *LEAD, "--attach", "cat.png"],
        "--attach cat.png: No such file or directory; give a file that can be read, or an address",
    ),
    "an attached folder": (["run", "add", *LEAD, "--attach", "folder"], "--attach folder: Is a directory; give a file"),
    "an empty attachment": (["run", "add", *LEAD, "--attach", "empty.jsonl"], "--attach empty.jsonl: "),
    "instructions of bytes": (
        ["run", "add", *LEAD, "--instructions", "@bin.dat"],
        "--instructions @bin.dat: it is not UTF-8 text (byte 0); give a file that can be read",
    ),
    "half a schema": (
        ["run", "add", *LEAD, "--answer-schema", "half.json"],
        "--answer-schema half.json: invalid JSON at line 1, column 10",
    ),
    "a list for a schema": (
        ["run", "add", *LEAD, "--answer-schema", "list.json"],
        'expected a JSON Schema, such as {"type": "object"}, got [1]',
    ),
    "a session outside the folder": (["run", "add", *LEAD, "--session", "../ada"], "session name '../ada': expected"),
    "a session that is not kept": (
        ["run", "add", *LEAD, "--session", "ada", "--no-trace"],
        "--session keeps its runs; leave out --no-trace",
    ),
    "a session and a resume": (["run", "--resume", "last", "--session", "ada"], "leave out --session"),
    "an unquoted question": (["run", "what", "is", "it"], "got unexpected extra arguments (is it); see concertino run"),
    "a misspelt option": (["run", "add", "--modle", "x"], "no such option '--modle'; did you mean "),
    "a loud log": (["run", "add", *LEAD, "--log-level", "loud"], "'loud' is not one of"),
    # call
    "nothing to call": (["call", " "], "the name is empty; give that of a tool or an agent"),
    "arguments in a folder": (["call", "band/add", "@folder"], "@folder: cannot be read: Is a directory; give JSON"),
    "arguments of bytes": (["call", "band/add", "@bin.dat"], "@bin.dat: cannot be read: it is not UTF-8 text (byte 0)"),
    "a budget of words": (["call", "band/add", "{}", "--budget", "calls=few"], "budget calls='few': expected a number"),
    # members, pools, plugins
    "a tool that is a model": (
        ["tools", "show", "band/lead"],
        "'band/lead' is not one of the tools; see `concertino models",
    ),
    "a provider that is not there": (["tools", "--only", "zzz/*"], "no installed provider is called 'zzz'; "),
    "a saved pool without a folder": (
        ["pool", "save", "no/where.toml"],
        "no/where.toml: cannot be written: No such file or directory; make its folder first",
    ),
    "a saved pool as text": (
        ["pool", "save", "pool.txt"],
        "unsupported extension '.txt'; expected .toml, .yaml or .yml",
    ),
    "a lock in a folder": (["pool", "lock", "--lock", "folder"], "folder: cannot be written: Is a directory"),
    "a lock of bytes": (["pool", "check", "--lock", "bin.dat"], "bin.dat: cannot be read: it is not UTF-8 text"),
    "a comparison with nothing": (["pool", "diff", "installed", "no.toml"], "no.toml: file not found; there are "),
    "an unknown part of pool": (["pool", "shwo"], "no such command 'shwo'"),
    "a plugin too many": (["plugins", "band"], "got unexpected extra argument (band); see concertino plugins --help"),
    "a check of a module": (["check", "json"], "no installed plugin is called 'json'; there are "),
    "a check of nothing in it": (["check", "band", "--only", "horn"], "'band' publishes no 'horn'; "),
    "a package without a name": (["new", "plugin"], "missing argument 'NAME'; see concertino new plugin --help"),
    "a package in a file": (
        ["new", "plugin", "words", "--dir", "bin.dat"],
        "cannot be written: Not a directory; choose",
    ),
    # traces, sessions
    "a list of words": (["traces", "list", "--limit", "few"], "invalid value for '--limit': 'few' is not"),
    "traces of a file": (["traces", "list", "--folder", "bin.dat"], "--folder bin.dat: it is a file; give a folder"),
    "traces of nowhere": (["traces", "show", "--folder", "gone"], "--folder gone: folder not found; give a folder"),
    "an unknown session": (["sessions", "show", "ada"], 'concertino run "…" --session ada begins it'),
    # init, completion
    "init over a file": (["init", "bin.dat", "--yes"], "Directory 'bin.dat' is a file; see concertino init --help"),
    "init with a bare name": (
        ["init", "new", "--yes", "--model", "lead"],
        "expected provider/name, such as openai/lead",
    ),
    "init with nobody to ask": (["init", "new"], "nobody can be asked, because stdin is no terminal; give --yes"),
    "a shell of another kind": (["completion", "csh"], "'csh' is not one of 'bash', 'zsh', 'fish'"),
}

FAILURES: dict[str, tuple[list[str], str]] = {
    "a resume of bytes": (["run", "--resume", "bin.dat"], "bin.dat: not a trace"),
    "a resume of nothing": (["run", "--resume", "gone"], "runs: folder not found, so no trace 'gone'"),
    "a trace of something else": (["traces", "show", "other.jsonl"], "other.jsonl: not a trace"),
    "a list for arguments": (["call", "band/add", "[1]"], "found an array where one JSON object belongs"),
    "a doctor of nothing": (["doctor", "--pool", "no.toml"], "1 error"),
}


@pytest.mark.parametrize(("arguments", "text"), USAGE.values(), ids=USAGE)
def test_wrong_usage_is_one_line_and_nothing_runs(cli: Any, arguments: list[str], text: str) -> None:
    done = cli(*arguments)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    assert text in done.stderr
    assert_one_error(done.stderr)
    assert not Path("runs").exists()
    assert not Path("new").exists()


@pytest.mark.parametrize(("arguments", "text"), FAILURES.values(), ids=FAILURES)
def test_what_fails_ends_with_one_line_and_another_code(cli: Any, arguments: list[str], text: str) -> None:
    done = cli(*arguments)
    assert done.exit_code == 1
    assert text in done.stderr
    assert_one_error(done.stderr.splitlines()[-1] + "\n")


@pytest.mark.parametrize("arguments", [["run", "add", "--pool", "no.toml"], ["tools", "--nonsense"], ["pool", "shwo"]])
def test_the_same_is_json_where_json_is_asked_for(cli: Any, arguments: list[str]) -> None:
    done = cli(*arguments, "--json")
    assert done.exit_code == 2
    assert set(json.loads(done.stderr)["error"]) == {"type", "message"}


def assert_one_error(text: str) -> None:
    assert text.startswith("Error: ")
    assert text.count("\n") == 1
    assert not re.search(r"Traceback|fault of concertino|unexpected \w+Error|\[Errno", text)


# -- commands of our other distributions -------------------------------------------------------------------------------

PLUGINS: dict[str, tuple[str, list[str], int, str]] = {
    "rows of bytes": (
        "concertino_bench",
        ["bench", "verify", "bin.dat"],
        1,
        "bin.dat: not UTF-8 text; expected JSON Lines",
    ),
    "rows of something else": (
        "concertino_bench",
        ["bench", "verify", "other.jsonl"],
        1,
        "other.jsonl, line 1: prompt_json",
    ),
    "results of bytes": (
        "concertino_bench",
        ["bench", "report", "bin.dat"],
        2,
        "expected the header of a results file",
    ),
    "an unknown task set": (
        "concertino_bench",
        ["bench", "run", "--tasks", "nosuch", "--system", "single-model"],
        2,
        "no task set 'nosuch'; concertino bench tasks lists them",
    ),
    "a level out of range": ("concertino_bench", ["bench", "generate", "--axis", "depth", "--level", "99"], 2, "range"),
    "a training without settings": ("concertino_train", ["train", "sft"], 2, "missing option '--config'"),
    "an unknown recipe": ("concertino_train", ["train", "recipes", "gpa/toy"], 2, "there is no recipe 'gpa/toy'"),
    "a training from bytes": ("concertino_train", ["train", "sft", "--config", "bin.toml"], 2, "bin.toml"),
    "no address": ("concertino_openai", ["probe", "foo"], 2, "expected an address such as http://127.0.0.1:8000/v1"),
    "an unknown MCP server": ("concertino_mcp", ["mcp", "call", "nosuch", "tool", "{}"], 2, "no MCP server 'nosuch'"),
    "a corpus of bytes": ("concertino_search", ["search-index", "bin.dat"], 1, "bin.dat: expected a file that ends in"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("package", "arguments", "code", "text"), PLUGINS.values(), ids=PLUGINS)
def test_commands_of_plugins_refuse_in_the_same_way(package: str, arguments: list[str], code: int, text: str) -> None:
    pytest.importorskip(package)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CONCERTINO_")}
    command = [sys.executable, "-m", "concertino", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110)
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert_one_error(done.stderr)


def test_a_probe_that_finds_nobody_is_called_by_its_failure(cli: Any, install: Any) -> None:
    pytest.importorskip("concertino_openai")
    install("prober", "from concertino_openai import concertino_cli", "probe")
    done = cli("probe", "http://127.0.0.1:9/v1", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stderr)["error"]["type"] == "ProviderError"
