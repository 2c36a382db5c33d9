"""`concertino run`: what it prints, its exit codes, and what it says of bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from waiting import until

LEAD = ("--model", "band/lead")


def test_a_run_prints_answer_statuses_cost_times_and_where_its_trace_is(cli: Any) -> None:
    done = cli("run", "add", *LEAD)
    assert done.exit_code == 0
    assert "\nthree\n" in done.stdout
    assert "3 in 1 round: 2 OK, 1 PARSE_ERR" in done.stdout
    assert "1 unit, " in done.stdout
    assert "critical path" in done.stdout
    (trace,) = Path("runs").glob("*.trace.jsonl")
    assert str(trace) in done.stdout


def test_plain_lines_go_to_stderr_one_per_event_that_matters(cli: Any) -> None:
    lines = cli("run", "add", *LEAD).stderr.splitlines()
    assert "round 1: 3 calls: add, add, echo" in lines[2]
    assert any("1.2 add PARSE_ERR" in line and "invalid_arguments" in line for line in lines)
    assert lines[-1].endswith("end: answered")


def test_json_is_one_object_and_nothing_else(cli: Any) -> None:
    done = cli("run", "add", *LEAD, "--json")
    data = json.loads(done.stdout)
    assert (data["answer"], data["stop"]) == ("three", "answered")
    assert [seen["status"] for seen in data["rounds"][0]["observations"]] == ["OK", "PARSE_ERR", "OK"]
    assert Path(data["trace"]).is_file()
    assert done.stderr == ""


def test_events_are_the_records_of_the_trace_one_a_line(cli: Any) -> None:
    lines = [json.loads(line) for line in cli("run", "add", *LEAD, "--events").stdout.splitlines()]
    assert [lines[0]["t"], lines[-1]["t"]] == ["run", "end"]
    (trace,) = Path("runs").glob("*.trace.jsonl")
    exported = cli("traces", "export", str(trace), "--format", "jsonl").stdout.splitlines()
    assert [line["t"] for line in lines] == [json.loads(line)["t"] for line in exported]


def test_a_model_with_nothing_to_call_answers_alone_unless_a_strategy_is_asked_for(cli: Any) -> None:
    parrot = ("--model", "band/parrot", "--only", "band/parrot")
    alone = cli("run", "hello", *parrot, "--quiet")
    assert (alone.exit_code, alone.stdout) == (0, "hello\n")
    assert cli("traces", "replay", "last").exit_code == 0
    chosen = cli("run", "hello", *parrot, "--strategy", "parallel-rounds")
    assert chosen.exit_code == 2
    assert "or choose no strategy" in chosen.stderr


def test_a_dash_reads_the_question_from_stdin(cli: Any) -> None:
    assert json.loads(cli("run", "-", *LEAD, "--json", stdin="add it\n").stdout)["question"] == "add it\n"


def test_no_trace_keeps_none(cli: Any) -> None:
    assert json.loads(cli("run", "add", *LEAD, "--no-trace", "--json").stdout)["trace"] is None
    assert not Path("runs").exists()


def test_a_run_without_an_answer_fails_and_says_what_to_do(cli: Any) -> None:
    done = cli("run", "babble", *LEAD, "--set", "max_unreadable_replies=2")
    assert done.exit_code == 1
    assert "ended  format: " in done.stdout
    assert "Error: the run ended without an answer: format" in done.stderr


def test_a_recording_answers_again_without_asking_anybody(cli: Any) -> None:
    assert cli("run", "add", *LEAD, "--no-trace", "--record", "rec.jsonl").exit_code == 0
    again = cli("run", "add", *LEAD, "--no-trace", "--replay", "rec.jsonl", "--json")
    assert again.exit_code == 0
    seen = json.loads(again.stdout)["rounds"][0]["observations"]
    assert [one.get("replayed", False) for one in seen if one["status"] == "OK"] == [True, True]
    miss = cli("run", "nap", *LEAD, "--no-trace", "--replay", "rec.jsonl", "--json")
    assert miss.exit_code == 1
    assert "rec.jsonl does not hold this request" in miss.stderr


BAD_INPUT = {
    "no question": (["run"], 'there is no question; give one: concertino run "…"'),
    "empty question": (["run", "  ", *LEAD], "the question is empty"),
    "nobody leads": (["run", "add"], "no model is chosen to lead the run; give --model NAME"),
    "unknown model": (["run", "add", "--model", "leed"], "the pool has no model 'leed'; did you mean 'band/lead'?"),
    "unknown full name": (
        ["run", "add", "--model", "band/leed"],
        "the pool has no model 'band/leed'; did you mean 'band/lead'?",
    ),
    "unknown provider": (["run", "add", "--only", "choir/*", *LEAD], "no installed provider is called 'choir'"),
    "pattern that fits nothing": (["run", "add", *LEAD, "--without", "band/harp"], "no member 'band/harp'"),
    "malformed budget": (["run", "add", *LEAD, "--budget", "usd=lots"], "budget usd='lots': expected a number"),
    "unknown currency": (["run", "add", *LEAD, "--budget", "eur=1"], "expected NAME=NUMBER with NAME one of rounds"),
    "unknown strategy": (["run", "add", *LEAD, "--strategy", "solo"], "there is no strategy 'solo'"),
    "unknown setting": (["run", "add", *LEAD, "--set", "tempo=3"], "has no setting 'tempo'; it has max_rounds"),
    "wrong setting": (["run", "add", *LEAD, "--set", "max_rounds=0"], "max_rounds=0): expected at least 1"),
    "malformed binding": (["run", "add", "--bind", "lead"], "--bind 'lead': expected ROLE=MODEL"),
    "missing pool file": (["run", "add", "--pool", "no.toml"], "no.toml: file not found"),
    "missing recording": (["run", "add", *LEAD, "--replay", "no.jsonl"], "no.jsonl: recording not found"),
    "both recordings": (["run", "add", *LEAD, "--replay", "a", "--record", "b"], "exclude each other"),
    "question and resume": (["run", "add", "--resume", "last"], "leave out the question"),
    "budget and resume": (["run", "--resume", "last", "--budget", "calls=9"], "leave out --budget"),
}


@pytest.mark.parametrize(("arguments", "text"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_wrong_usage_and_nothing_runs(cli: Any, arguments: list[str], text: str) -> None:
    done = cli(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("runs").exists()


def test_a_budget_that_no_call_fits_is_refused_with_the_least_that_is_needed(cli: Any) -> None:
    done = cli("run", "add", *LEAD, "--only", "band/add", "--budget", "units=0.5")
    assert done.exit_code == 2
    assert "budget units=0.5 fits no call: the cheapest member of the pool needs 1" in done.stderr


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('members = ["band/addd"]', "did you mean 'band/add'"),
        ('[roles]\norchestrator = "band/leed"', "'band/leed'"),
        ("membres = []", "unknown key 'membres'; did you mean 'members'?"),
        ("members = [", "invalid TOML"),
    ],
)
def test_a_wrong_pool_file_is_named_with_the_place_and_a_near_name(cli: Any, line: str, text: str) -> None:
    Path("pool.toml").write_text(line)
    done = cli("run", "add", *LEAD, "--pool", "pool.toml")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: pool.toml")
    assert text in done.stderr


def test_stdin_that_is_no_text_is_wrong_usage(cli: Any) -> None:
    done = cli("run", "-", *LEAD, stdin=b"\xff\xfe\xff")
    assert done.exit_code == 2
    assert "stdin is not UTF-8 text" in done.stderr


def test_a_plugin_that_raises_at_import_is_left_out_and_named(cli: Any, install: Any) -> None:
    install("broken", "raise RuntimeError('no strings')")
    done = cli("run", "add", *LEAD)
    assert done.exit_code == 0
    assert "left out: plugin 'broken'" in done.stderr
    assert "no strings" in done.stderr


def test_a_pool_file_that_needs_a_broken_plugin_fails_with_its_fault(cli: Any, install: Any) -> None:
    install("wrong", "import concertino\n@concertino.hookimpl\ndef concertino_tools(): return 'a tool'")
    Path("pool.toml").write_text('members = ["band/*", "wrong/*"]')
    done = cli("run", "add", "--pool", "pool.toml", *LEAD)
    assert done.exit_code == 1
    assert "pool.toml" in done.stderr
    assert "concertino_tools()" in done.stderr
    assert "concertino doctor" in done.stderr


def interrupt(site: Path, *arguments: str) -> tuple[int, str, str]:
    """Start the command line, press Ctrl-C when the nap has begun, and wait for the end."""
    environment = {**os.environ, "PYTHONPATH": str(site), "CONCERTINO_PLUGINS": "band"}
    command = [sys.executable, "-m", "concertino", *arguments]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        until(lambda: any('"name":"band/nap"' in file.read_text() for file in Path("runs").glob("*.trace.jsonl")))
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    return child.returncode, out, err


def test_ctrl_c_cancels_says_what_was_done_and_how_to_go_on(cli: Any, site: Path) -> None:
    code, out, err = interrupt(site, "run", "nap", *LEAD, "--only", "band/*")
    assert code == 130
    assert "ended  cancelled" in out
    assert "3 in 2 rounds: 2 OK, 1 EXEC_ERR" in out
    (trace,) = Path("runs").glob("*.trace.jsonl")
    assert f"resume with: concertino run --resume {trace} --only 'band/*'" in err
    assert "Traceback" not in err

    resumed = cli("run", "--resume", "last", "--only", "band/*", "--json")
    assert resumed.exit_code == 0, resumed.stderr
    assert json.loads(resumed.stdout)["answer"] == "three"
    started = [r["id"] for r in json.loads(cli("traces", "export").stdout)["records"] if r["t"] == "intent"]
    assert started.count("1.1") == 1, "a finished call was repeated"
    assert started.count("2.2") == 1, "a cancelled call that may have been executed was repeated"
    assert json.loads(cli("traces", "replay", "--json").stdout)["same"]


def test_a_resume_without_a_pool_takes_the_members_of_the_trace(cli: Any, site: Path) -> None:
    interrupt(site, "run", "nap", *LEAD)
    assert cli("run", "--resume", "last").exit_code == 0


def test_a_resume_on_another_pool_is_refused_in_words(cli: Any, site: Path) -> None:
    interrupt(site, "run", "nap", *LEAD)
    done = cli("run", "--resume", "last", "--without", "band/fail")
    assert done.exit_code == 1
    assert "band/fail is missing" in done.stderr


def test_ctrl_c_is_json_where_json_is_asked_for(site: Path) -> None:
    code, out, err = interrupt(site, "run", "nap", *LEAD, "--json")
    assert (code, out) == (130, "")
    error = json.loads(err)["error"]
    assert error["type"] == "Interrupted"
    assert error["message"].startswith("cancelled; resume with: concertino run --resume ")


def test_a_finished_run_is_not_resumed(cli: Any) -> None:
    cli("run", "add", *LEAD)
    done = cli("run", "--resume", "last")
    assert done.exit_code == 1
    assert "the run is finished (answered); there is nothing to resume" in done.stderr


def test_a_setting_of_the_wrong_kind_and_a_misspelt_strategy_are_refused_in_words(cli: Any) -> None:
    done = cli("run", "add", "--set", "max_rounds=abc")
    assert done.exit_code == 2
    assert "--set max_rounds=abc: expected a whole number, such as 12" in done.stderr
    done = cli("run", "add", "--strategy", "parallel-round")
    assert "did you mean 'parallel-rounds'?" in done.stderr
