"""`tools`, `agents`, `models`, `pool`, `plugins`, `doctor` and `check`: what is there, and what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest


def test_the_tools_are_listed_with_what_they_cost_and_take_of_the_context(cli: Any) -> None:
    head, first, *_ = cli("tools").stdout.splitlines()
    assert head.split() == ["NAME", "SEEN", "AS", "COST", "TIMEOUT", "TOKENS", "DESCRIPTION"]
    assert first.split()[:3] == ["band/add", "add", "1"]
    assert cli("tools", "list").stdout == cli("tools").stdout


@pytest.mark.parametrize("command", ["tools", "agents", "models"])
def test_each_listed_member_is_what_show_prints(cli: Any, command: str) -> None:
    listed = json.loads(cli(command, "--json").stdout)
    assert listed
    for member in listed:
        assert json.loads(cli(command, "show", member["name"], "--json").stdout) == member


@pytest.mark.parametrize("name", ["band/add", "band/echo", "band/lead"])
def test_the_help_names_every_key_of_the_json(cli: Any, name: str) -> None:
    command = {"band/add": "tools", "band/echo": "agents", "band/lead": "models"}[name]
    documented = set(re.findall(r'"(\w+)"', cli(command, "show", "--help").stdout))
    optional = {"output_schema", "concurrency", "maths_fields"}
    assert documented - optional == set(json.loads(cli(command, "show", name, "--json").stdout)) - optional


def test_a_member_is_shown_with_its_schema(cli: Any) -> None:
    text = cli("tools", "show", "add").stdout
    assert text.startswith("name         band/add\n")
    assert '"required": [' in text


def test_a_member_of_another_kind_is_pointed_to(cli: Any) -> None:
    done = cli("tools", "show", "echo")
    assert done.exit_code == 2
    assert "see `concertino agents show band/echo`" in done.stderr


def test_an_unknown_member_is_answered_with_near_names(cli: Any) -> None:
    done = cli("tools", "show", "band/nop")
    assert done.exit_code == 2
    assert "did you mean 'band/nap'" in done.stderr


def test_a_pool_is_saved_shown_and_compared(cli: Any) -> None:
    assert cli("pool", "save", "small.toml", "--only", "band/add", "--bind", "default=lead").exit_code == 0
    shown = json.loads(cli("pool", "show", "--pool", "small.toml", "--json").stdout)
    assert [member["name"] for member in shown["members"]] == ["band/add", "band/lead"]
    assert shown["roles"] == {"default": "band/lead"}
    assert json.loads(cli("pool", "diff", "small.toml", "small.toml", "--json").stdout)["equal"]
    lines = cli("pool", "diff", "small.toml", "installed").stdout.splitlines()
    assert lines == ["+ band/nap", "+ band/fail", "+ band/echo", "+ band/parrot", "@ default: band/lead -> None"]


def test_tokens_are_counted_by_member_and_in_all(cli: Any) -> None:
    counted = json.loads(cli("pool", "tokens", "--json").stdout)
    assert counted["total"] == sum(counted["by_member"].values())
    assert cli("pool", "tokens").stdout.splitlines()[-1].split() == [str(counted["total"]), "(all)"]


def test_finding_members_without_a_search_says_what_to_install(cli: Any) -> None:
    assert "the question is empty" in cli("pool", "find", " ").stderr
    failed = cli("pool", "find", "add two numbers")
    assert failed.exit_code == 2
    assert "pip install 'concertino[search]'" in failed.stderr


def test_a_pool_that_is_no_longer_the_locked_one_fails_the_check(cli: Any) -> None:
    assert cli("pool", "lock").exit_code == 0
    assert cli("pool", "check").exit_code == 0
    changed = cli("pool", "check", "--without", "band/nap", "--json")
    assert changed.exit_code == 1
    assert json.loads(changed.stdout)["differences"] == ["member 'band/nap' is locked but not in the pool"]


def test_a_missing_lock_is_wrong_usage(cli: Any) -> None:
    done = cli("pool", "check", "--lock", "no.lock")
    assert done.exit_code == 2
    assert "no.lock: file not found" in done.stderr


def test_the_pool_of_the_settings_is_the_default(cli: Any) -> None:
    Path("concertino.toml").write_text('pool = "mine.toml"', encoding="utf-8")
    Path("mine.toml").write_text('members = ["band/nap"]', encoding="utf-8")
    assert [tool["name"] for tool in json.loads(cli("tools", "--json").stdout)] == ["band/nap"]


def test_a_pool_of_the_settings_that_is_not_there_names_the_settings_file(cli: Any) -> None:
    Path("concertino.toml").write_text('pool = "nofile.toml"', encoding="utf-8")
    for command in (("tools",), ("run", "add"), ("call", "band/add", "{}"), ("pool", "show")):
        done = cli(*command)
        assert done.exit_code == 2
        assert "`pool` in concertino.toml: nofile.toml: file not found" in done.stderr
        assert done.stderr.endswith("; correct it, or give --pool FILE\n")


def test_a_list_of_names_says_how_many_more_there_are(cli: Any, install: Any) -> None:
    for number in range(14):
        install(f"p{number:02}", "import concertino\n@concertino.hookimpl\ndef concertino_tools(): return []")
    done = cli("tools", "--only", "zzz/*")
    assert "there are band, p00, p01, p02, p03, p04, p05, p06, p07, p08, p09, p10, and 3 more" in done.stderr


def test_a_name_that_only_has_some_letters_in_common_is_not_suggested(cli: Any, install: Any) -> None:
    source = """
import concertino

@concertino.tool
def debate(text: str) -> str:
    'Debate.'
    return text

@concertino.hookimpl
def concertino_tools():
    return [debate]
"""
    install("reasoning", source)
    assert "did you mean" not in cli("call", "weather", "{}").stderr
    assert "did you mean debate?" in cli("call", "debatte", "{}").stderr


def test_one_of_a_thing_is_not_called_by_its_plural(cli: Any) -> None:
    Path("one.toml").write_text('members = ["band/add"]', encoding="utf-8")
    assert "ok       pool: one.toml: 1 member\n" in cli("doctor", "--pool", "one.toml").stdout
    text = cli("run", "nap", "--model", "band/lead", "--only", "band/*").stdout
    assert "in 2 rounds" in text
    text = cli("run", "add", "--model", "band/lead").stdout
    assert "in 1 round:" in text
    assert "1 unit, " in text
    assert "1 request to models of unknown price" in text


def test_plugins_are_listed_without_importing_them(cli: Any) -> None:
    (row,) = json.loads(cli("plugins", "--json").stdout)
    assert (row["name"], row["distribution"], row["version"], row["state"]) == ("band", "acme-band", "1.0", "installed")
    assert (row["members"], row["import_ms"]) == (None, None)


def test_loaded_plugins_show_members_hooks_commands_and_import_time(cli: Any) -> None:
    (row,) = json.loads(cli("plugins", "--load", "--json").stdout)
    assert row["state"] == "loaded"
    assert "band/echo" in row["members"]
    assert "concertino_cli" in row["hooks"]
    assert row["commands"] == ["tune"]
    assert row["import_ms"] >= 0


BROKEN = {
    "raises": ("raise RuntimeError('no strings')", "no strings"),
    "wrong type": ("import concertino\n@concertino.hookimpl\ndef concertino_tools(): return 'a tool'", "a tool"),
    "no hook": ("x = 1", "holds no hook"),
}


@pytest.mark.parametrize(("source", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_plugin_is_a_row_with_a_reason_and_an_error_of_the_doctor(
    cli: Any, install: Any, source: str, reason: str
) -> None:
    install("broken", source)
    rows = {row["name"]: row for row in json.loads(cli("plugins", "--load", "--json").stdout)}
    assert rows["broken"]["state"] == "failed"
    assert reason in rows["broken"]["reason"]
    assert rows["band"]["state"] == "loaded"
    done = cli("doctor")
    assert done.exit_code == 1
    assert "error    plugin broken: " in done.stdout
    assert "Error: 1 error" in done.stderr


def test_the_doctor_reads_the_pool_of_the_settings(cli: Any) -> None:
    Path("concertino.toml").write_text('pool = "none.toml"', encoding="utf-8")
    done = cli("doctor")
    assert done.exit_code == 1
    assert "none.toml: file not found" in done.stdout
    assert "correct the file, or `pool` in" in done.stdout


def test_the_doctor_asks_for_rankings_too(cli: Any, install: Any) -> None:
    install("sorter", "import concertino\n@concertino.hookimpl\ndef concertino_rankings(settings): return [7]")
    done = cli("doctor")
    assert done.exit_code == 1
    assert "a method `order(question, entries)`" in done.stdout


def test_the_doctor_is_content_with_a_sound_installation(cli: Any) -> None:
    done = cli("doctor", "--json")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["ok"]
    assert {"level", "subject", "text", "step"} == set(report["findings"][0])


def test_check_reports_conformance(cli: Any) -> None:
    report = json.loads(cli("check", "band", "--json").stdout)
    assert report["package"] == "band"
    assert {row["outcome"] for row in report["rows"]} <= {"ok", "failed", "missing", "skipped"}


def test_check_of_something_unknown_is_wrong_usage(cli: Any) -> None:
    done = cli("check", "bend")
    assert done.exit_code == 2
    assert "did you mean 'band'?" in done.stderr


def test_an_interrupted_check_shows_what_was_checked(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from concertino.testing import package as _package

    monkeypatch.setattr(_package, "_examples", lambda *given: (_ for _ in ()).throw(KeyboardInterrupt))
    done = cli("check", "band")
    assert done.exit_code == 130
    assert "plugin band" in done.stdout
    assert "cancelled" in done.stderr
