"""Calls that wait for approval, on the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

LEAD = ("--model", "band/lead")


@pytest.fixture
def guarded(cli: Any) -> Any:
    """`cli run` over a pool in which `add` needs approval."""
    Path("guarded.toml").write_text('[overrides."band/add"]\napproval = true\n')

    def run(*arguments: str) -> Any:
        return cli("run", *arguments, "--pool", "guarded.toml")

    return run


def test_without_a_terminal_the_run_is_suspended_and_says_how_to_decide(guarded: Any) -> None:
    done = guarded("add", *LEAD)
    assert done.exit_code == 1
    assert "the run is suspended: waits for approval of 1.1 band/add" in done.stderr
    (trace,) = Path("runs").glob("*.trace.jsonl")
    assert f"resume with: concertino run --resume {trace} --pool guarded.toml --approve 1.1" in done.stderr


def test_an_approved_call_runs_and_a_denied_one_is_read_by_the_model(guarded: Any) -> None:
    guarded("add", *LEAD)
    approved = guarded("--resume", "last", "--approve", "1.1")
    assert approved.exit_code == 0, approved.stderr
    assert "3 in 1 round: 2 OK, 1 PARSE_ERR" in approved.stdout
    guarded("add", *LEAD)
    denied = guarded("--resume", "last", "--deny", "1.1=not today")
    assert "1 EXEC_ERR" in denied.stdout
    assert "refused: not today" in denied.stderr


def test_in_a_terminal_a_person_is_asked_with_the_whole_arguments(
    guarded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(pending: Any) -> Mapping[str, Any]:
        from concertino.core.approval import Approve

        asked.extend(f"{request.name} {request.arguments}" for request in pending)
        return {request.call_id: Approve() for request in pending}

    monkeypatch.setattr("concertino.cli.show.Display.may_ask", True)
    monkeypatch.setattr("concertino.cli.show.ask_about", ask)
    done = guarded("add", *LEAD)
    assert done.exit_code == 0, done.stderr
    assert asked == ["band/add {'a': 1, 'b': 2}"]


@pytest.mark.parametrize(("typed", "said"), [("y\n", "1.1 yes"), ("n\ntoo much\n", "1.1 no: too much")])
def test_the_answers_of_the_terminal_become_decisions(
    typed: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io

    from concertino.cli.show import ask_about
    from concertino.core.approval import ApprovalRequest, Approve

    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    request = ApprovalRequest("1.1", "band/pay\x1b[2J", {"usd": 500}, "Pay.", "r", "q")
    (decision,) = ask_about([request]).values()
    assert said == ("1.1 yes" if isinstance(decision, Approve) else f"1.1 no: {decision.reason}")
    shown = capsys.readouterr().err
    assert '"usd": 500' in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", *LEAD, "--approve", "1.1"], "--approve and --deny go with --resume"),
        (["--resume", "last", "--approve", "9.9"], "no call '9.9' of run"),
        (["--resume", "last", "--approve", "1.1", "--deny", "1.1=x"], "1.1 is approved and denied; choose one"),
    ],
)
def test_a_decision_that_cannot_be_is_wrong_usage(guarded: Any, arguments: list[str], said: str) -> None:
    guarded("add", *LEAD)
    done = guarded(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_resumed_run_streams_its_text_where_that_is_asked_for(guarded: Any) -> None:
    def answer_pieces(*options: str) -> tuple[str, str]:
        guarded("add", *LEAD)
        done = guarded("--resume", "last", "--approve", "1.1", "--events", *options)
        records = [json.loads(line) for line in done.stdout.splitlines()]
        pieces = [each["text"] for each in records if each["t"] == "text" and each["kind"] == "answer"]
        return "".join(pieces), records[-1]["answer"]

    assert answer_pieces("--stream") == ("three", "three")
    assert answer_pieces() == ("", "three")
    guarded("add", *LEAD)
    done = guarded("--resume", "last", "--approve", "1.1", "--stream")
    assert (done.exit_code, done.stdout.count("three")) == (0, 1)


def test_a_single_call_that_needs_approval_is_asked_about_in_a_terminal(
    cli: Any, guarded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ("call", "add", '{"a": 1, "b": 2}', "--pool", "guarded.toml")
    alone = cli(*call)
    assert (alone.exit_code, alone.stdout) == (1, "")
    assert "waits for approval; call it in a terminal, where you are asked" in alone.stderr
    monkeypatch.setattr("concertino.cli.show.at_a_terminal", lambda: True)
    agreed = cli(*call, stdin="y\n")
    assert (agreed.exit_code, agreed.stdout) == (0, "3\n"), agreed.stderr
    assert '"a": 1' in agreed.stderr
    denied = cli(*call, stdin="n\ntoo much\n")
    assert denied.exit_code == 1
    assert "denied: refused: too much" in denied.stderr
