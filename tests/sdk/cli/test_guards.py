"""Guards on the command line: chosen by name, and what is shown of their checks."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from concertino.cli.live import LiveView
from concertino.cli.run import run as run_command
from concertino.traces import TraceStore
from concertino.traces.board import Board, board_of
from rich.console import Console

from .conftest import Cli, Install

WARD = '''
import concertino as ct


@ct.guard("question")
def tidy(question: str) -> ct.Replace:
    """Cut blanks off. Both ends."""
    return ct.Replace(question.strip())


@ct.guard("call", only="echo")
def silence(call: ct.GuardedCall) -> ct.Deny:
    return ct.Deny("be\\x1b[31m silent")


@ct.guard("result")
def look(result: ct.GuardedResult) -> None:
    return None


@ct.guard("answer")
def broken(answer: str) -> None:
    raise ValueError("no judge")


@ct.guard("answer")
def enough(answer: str) -> ct.EndRun:
    return ct.EndRun("that will do")


@ct.hookimpl
def concertino_guards():
    return [tidy, silence, look, broken, enough]
'''
LEAD = ("--model", "band/lead", "--only", "band/*")


@pytest.fixture
def guarded(cli: Cli, install: Install) -> Any:
    """`cli run` with guards."""
    install("ward", WARD)

    def run(*names: str, options: tuple[str, ...] = ()) -> Any:
        return cli("run", " add ", *LEAD, *(word for name in names for word in ("--guard", f"ward/{name}")), *options)

    return run


def test_guards_of_plugins_are_named_and_their_refusals_are_listed_in_the_summary(guarded: Any) -> None:
    done = guarded("tidy", "silence", "look")
    assert done.exit_code == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    place = next(number for number, line in enumerate(lines) if line.startswith("guards "))
    assert lines[place] == "guards 3 checks: 1 passed, 1 replaced, 1 denied"
    assert lines[place + 1].startswith("ward/tidy: question replaced in 0.0")
    assert lines[place + 1].endswith(" s: by add")
    assert lines[place + 2].startswith("ward/silence: call 1.3 denied in 0.0")
    assert lines[place + 2].endswith(r" s: be\x1b[31m silent")
    assert lines[place + 3].startswith("cost ")
    told = [line.split("] ")[1] for line in done.stderr.splitlines() if "] guard " in line]
    assert [line.split(" in ")[0] for line in told] == [
        "guard ward/tidy: question replaced",
        "guard ward/silence: call 1.3 denied",
    ]
    assert "\x1b" not in done.stdout + done.stderr


def test_a_run_without_guards_says_nothing_of_them(guarded: Any) -> None:
    assert "guard" not in guarded().output


def test_every_check_of_a_trace_is_shown_with_stage_verdict_status_and_reason(guarded: Any, cli: Cli) -> None:
    assert guarded("look", "broken").exit_code == 1
    shown = [" ".join(line.split()) for line in cli("traces", "show").stdout.splitlines()]
    first = shown.index("GUARD STAGE ABOUT VERDICT STATUS SECONDS REASON")
    rows = [line.split() for line in shown[first + 1 : first + 4]]
    assert sorted(row[:6] for row in rows[:2]) == [
        ["ward/look", "result", "result", "of", "1.1", "passed"],
        ["ward/look", "result", "result", "of", "1.3", "passed"],
    ]
    assert shown[first + 3].startswith("ward/broken answer answer denied EXEC_ERR 0.0")
    assert shown[first + 3].endswith("raised: ValueError: no judge")
    assert not any("ward/look: " in line for line in shown)
    data = json.loads(cli("traces", "show", "--json").stdout)
    begun = [each["id"] for each in data["records"] if each["t"] == "intent" and each["kind"] == "guard"]
    ended = [each["id"] for each in data["records"] if each["t"] == "result" and each["id"].startswith("guard")]
    assert sorted(begun) == sorted(ended)
    assert data["summary"]["calls"] == 3


def test_a_guard_that_ends_the_run_is_told_where_the_run_is_shown(guarded: Any) -> None:
    done = guarded("enough")
    assert done.exit_code == 1
    assert "ward/enough: answer ended the run in " in done.stdout
    assert "ended without an answer: guard: that will do" in done.stderr


def test_the_live_view_shows_a_refusal_and_no_pass(guarded: Any) -> None:
    guarded("silence", "look")
    (path,) = TraceStore().folder.glob("*.trace.jsonl")
    records = TraceStore().load(str(path)).records
    text = live_text(records)
    assert "guard ward/silence: call 1.3 denied in " in text
    assert "ward/look" not in text
    board = board_of(records)
    assert [row.id for row in board.rows()] == ["1.1", "1.2", "1.3"]
    assert board.verdicts() == {"passed": 1, "denied": 1}


def live_text(records: Sequence[Mapping[str, Any]]) -> str:
    output, board = io.StringIO(), Board()
    with LiveView(board, Console(file=output, width=120, height=40)) as view:
        for record in records:
            board.apply(record)
            view.show(record)
    return output.getvalue()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ward/silense", "provider 'ward' offers no guard 'silense'; did you mean 'silence'?"),
        ("ward/zzz", "there are tidy, silence, look, broken, enough"),
        ("wart/look", "no installed provider is called 'wart'"),
        ("look", "--guard 'look': expected provider/name; did you mean ward/look?"),
        ("silense", "--guard 'silense': expected provider/name; did you mean 'ward/silence'?"),
    ],
)
def test_a_guard_that_there_is_not_is_one_line_with_near_names(
    cli: Cli, install: Install, name: str, text: str
) -> None:
    install("ward", WARD)
    done = cli("run", "add", *LEAD, "--guard", name)
    assert done.exit_code != 0
    assert text in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_resumed_run_keeps_its_guards(guarded: Any, cli: Cli) -> None:
    Path("guarded.toml").write_text('[overrides."band/add"]\napproval = true\n', encoding="utf-8")
    pool = ("--pool", "guarded.toml")
    cli("run", "add", "--model", "band/lead", *pool, "--guard", "ward/silence")
    done = cli("run", "--resume", "last", "--approve", "1.1", *pool)
    assert done.exit_code == 0, done.stderr
    assert "ward/silence: call 1.3 denied" in done.stdout
    refused = cli("run", "--resume", "last", "--guard", "ward/look")
    assert "leave out --guard" in refused.stderr


def test_guards_that_plugins_publish_are_listed_with_the_plugins(cli: Cli, install: Install) -> None:
    install("ward", WARD)
    (row,) = [row for row in json.loads(cli("plugins", "--json").stdout) if row["name"] == "ward"]
    assert row["guards"] is None
    (row,) = [row for row in json.loads(cli("plugins", "--load", "--json").stdout) if row["name"] == "ward"]
    assert row["guards"] == [f"ward/{name}" for name in ("tidy", "silence", "look", "broken", "enough")]
    assert "ward/tidy,ward/silence" in cli("plugins", "--load").stdout


def test_completion_knows_the_guards_that_a_command_has_seen(cli: Cli, install: Install) -> None:
    install("ward", WARD)
    cli("completion", "bash")
    cli("plugins", "--load")
    option = next(each for each in run_command.params if each.name == "guards")
    proposed = option.shell_complete(click.Context(run_command), "ward/t")
    assert [(item.value, item.help) for item in proposed] == [("ward/tidy", "Cut blanks off")]
