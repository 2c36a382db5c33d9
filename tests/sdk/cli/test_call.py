"""`concertino call`: one call through the real executor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_the_result_goes_to_stdout_and_the_status_to_stderr(cli: Any) -> None:
    done = cli("call", "band/add", '{"a": 1, "b": 2}')
    assert (done.exit_code, done.stdout) == (0, "3\n")
    assert done.stderr.startswith("OK  band/add  ")


def test_json_is_the_observation(cli: Any) -> None:
    seen = json.loads(cli("call", "add", '{"a": 1, "b": 2}', "--json").stdout)
    assert (seen["name"], seen["status"], seen["content"]) == ("band/add", "OK", 3)


def test_arguments_come_from_a_file_or_from_stdin(cli: Any) -> None:
    Path("arguments.json").write_text('{"a": 2, "b": 2}', encoding="utf-8")
    assert cli("call", "band/add", "@arguments.json").stdout == "4\n"
    assert cli("call", "band/add", "-", stdin='{"a": 2, "b": 3}').stdout == "5\n"


def test_arguments_that_a_model_could_have_written_are_repaired_and_that_is_said(cli: Any) -> None:
    done = cli("call", "band/add", "{'a': 1, 'b': 2,}")
    assert done.stdout == "3\n"
    assert "repaired: " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["band/add", "{"], "PARSE_ERR", "bad_json"),
        (["band/add", '{"a": "x", "b": 2}'], "PARSE_ERR", "invalid_arguments: /a: expected"),
        (["band/ad", "{}"], "PARSE_ERR", "unknown_name"),
        (["band/fail"], "EXEC_ERR", "ValueError: out of tune"),
        (["band/nap", '{"seconds": 9}', "--budget", "seconds=0.2"], "TIMEOUT", "deadline"),
    ],
)
def test_a_call_that_does_not_succeed_exits_1_and_says_why(
    cli: Any, arguments: list[str], status: str, text: str
) -> None:
    done = cli("call", *arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{status}  ")
    assert text in done.stderr


def test_an_agent_is_called_with_its_models_bound(cli: Any) -> None:
    assert cli("call", "band/echo", '{"text": "la"}', "--bind", "default=parrot").stdout == "la\n"


def test_an_error_text_cannot_colour_the_terminal(cli: Any) -> None:
    done = cli("call", "band/fail")
    assert "\x1b" not in done.stderr
    assert "\\x1b[31m" in done.stderr


def test_a_file_that_is_not_there_is_wrong_usage(cli: Any) -> None:
    done = cli("call", "band/add", "@no.json")
    assert done.exit_code == 2
    assert "@no.json: cannot be read" in done.stderr
    assert "give JSON, @FILE, or - for stdin" in done.stderr


GUARD = '''
import concertino

told = []


@concertino.tool
def hello(text: str) -> str:
    """Greet."""
    return "hi " + text


@concertino.hookimpl
def concertino_tools():
    return [hello]


@concertino.hookimpl
def concertino_before_call(spec, arguments):
    if arguments.get("text") == "deny":
        raise PermissionError("not that one")
    told.append(arguments)
'''


@pytest.mark.parametrize("options", [[], ["--only", "guard/*"]])
def test_hooks_of_the_member_s_own_plugin_stand_around_the_call_once(
    cli: Any, install: Any, options: list[str]
) -> None:
    install("guard", GUARD)
    denied = cli("call", "guard/hello", '{"text": "deny"}', *options)
    assert denied.exit_code == 1
    assert "not that one" in denied.stderr
    assert cli("call", "guard/hello", '{"text": "you"}', *options).stdout == "hi you\n"
    assert __import__("acme_guard").told == [{"text": "you"}]


def test_a_member_of_a_plugin_that_is_left_out_says_why(cli: Any, install: Any) -> None:
    install("guard", "raise ValueError('no key')")
    done = cli("call", "guard/hello", "{}")
    assert done.exit_code != 0
    assert "no key" in done.stderr


def test_a_model_is_not_called(cli: Any) -> None:
    done = cli("call", "band/parrot", "{}")
    assert done.exit_code == 2
    assert "'band/parrot' is a model" in done.stderr


def test_two_invocations_carry_different_idempotency_keys(cli: Any, install: Any) -> None:
    install(
        "till",
        "import concertino\n\n"
        "@concertino.tool(writes=True)\n"
        "def pay(ctx: concertino.Context, amount: int) -> str:\n"
        '    """Pay, and say under which key."""\n'
        "    return ctx.idempotency_key\n\n"
        "@concertino.hookimpl\n"
        "def concertino_tools():\n"
        "    return [pay]\n",
    )
    keys = [cli("call", "till/pay", '{"amount": 5}').stdout.strip() for _ in range(2)]
    assert all(keys)
    assert keys[0] != keys[1]
