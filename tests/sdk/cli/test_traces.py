"""`concertino traces`: listing, showing, following, replaying and exporting."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino.traces.journal import Journal


@pytest.fixture
def trace(cli: Any) -> Path:
    """A trace of a run with an agent, a failed call and a tool."""
    assert cli("run", "add", "--model", "band/lead").exit_code == 0
    (path,) = Path("runs").glob("*.trace.jsonl")
    return path


def test_traces_are_listed_with_how_they_ended(cli: Any, trace: Path) -> None:
    (line,) = json.loads(cli("traces", "list", "--json").stdout)
    assert (line["path"], line["stop"], line["question"]) == (str(trace), "answered", "add")
    assert cli("traces", "list").stdout.splitlines()[1].startswith(line["run_id"])


def test_a_long_question_is_cut_in_the_list_and_whole_in_its_json(cli: Any) -> None:
    question = "add " + "and so on " * 500
    cli("run", question, "--model", "band/lead")
    assert max(map(len, cli("traces", "list").stdout.splitlines())) < 300
    assert json.loads(cli("traces", "list", "--json").stdout)[0]["question"] == question


def test_no_trace_is_no_error_and_says_what_writes_one(cli: Any) -> None:
    done = cli("traces", "list")
    assert done.exit_code == 0
    assert "`concertino run` and `concertino demo` write them" in done.stdout


@pytest.mark.usefixtures("trace")
def test_a_run_is_shown_with_the_calls_inside_agents_below_them(cli: Any) -> None:
    lines = [line.strip() for line in cli("traces", "show").stdout.splitlines()]
    agent = next(i for i, line in enumerate(lines) if line.startswith("✓ echo"))
    assert lines[agent + 1] == "→ hi"
    assert lines[agent + 2].startswith("✓ └ band/parrot")
    assert any(line.startswith("✗ add") and "PARSE_ERR" in line for line in lines)
    assert any(line.startswith("invalid_arguments: ") for line in lines)
    assert "three" in lines


@pytest.mark.usefixtures("trace")
def test_shown_as_json_a_trace_is_summary_setup_and_records(cli: Any) -> None:
    data = json.loads(cli("traces", "show", "--json").stdout)
    assert set(data) == {"summary", "setup", "records"}
    assert data["setup"]["strategy"]["name"] == "parallel-rounds"


@pytest.mark.usefixtures("trace")
def test_a_replay_ends_as_recorded_without_any_plugin(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCERTINO_PLUGINS", "-")
    done = cli("traces", "replay")
    assert (done.exit_code, done.stdout) == (0, "three\n")
    assert "the same end as recorded" in done.stderr


def test_a_replay_that_ends_otherwise_fails(cli: Any, trace: Path) -> None:
    from concertino import Trace

    changed = Trace.load(trace)
    changed.records[-1]["answer"] = "four"
    changed.save("changed.trace.jsonl")
    done = cli("traces", "replay", "changed.trace.jsonl")
    assert done.exit_code == 1
    assert "recorded was answered: four" in done.stderr


def test_an_export_goes_to_a_file_or_to_stdout(cli: Any, trace: Path) -> None:
    assert cli("traces", "export", trace.name[:15], "-o", "out.json").exit_code == 0
    exported = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert exported == json.loads(cli("traces", "export").stdout)
    assert [record["t"] for record in exported["records"]][:2] == ["run", "ask"]


@pytest.fixture
def writer(trace: Path) -> Iterator[Path]:
    """A trace that another thread writes, record by record, while the test reads it."""
    from concertino import Trace
    from concertino.traces.trace import header

    known = Trace.load(trace)
    path = Path("growing.trace.jsonl")
    journal = Journal.create(path, header(known.run_id))

    def write() -> None:
        with journal:
            for record in known.records:
                journal.append({key: value for key, value in record.items() if key != "n"})

    thread = threading.Timer(0.3, write)
    thread.start()
    yield path
    thread.join()


def test_a_growing_trace_is_followed_to_its_end(cli: Any, writer: Path) -> None:
    done = cli("traces", "follow", str(writer))
    assert done.exit_code == 0
    assert "round 1: 3 calls" in done.stderr
    assert "\nthree\n" in done.stdout


EVERY_COMMAND = ["show", "replay", "export", "follow"]


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_a_trace_that_is_not_there_is_refused_in_words(cli: Any, command: str) -> None:
    assert "runs: folder not found, so no trace 'gone'" in cli("traces", command, "gone").stderr
    Path("runs").mkdir()
    done = cli("traces", command, "gone")
    assert done.exit_code == 1
    assert "there is no trace 'gone' in runs; see `concertino traces list --folder runs`" in done.stderr


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_a_file_that_is_no_trace_is_refused_in_words(cli: Any, command: str) -> None:
    Path("other.jsonl").write_text('{"question": 1}\n', encoding="utf-8")
    done = cli("traces", command, "other.jsonl")
    assert done.exit_code == 1
    assert "other.jsonl: not a trace" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_trace_is_refused_in_words(cli: Any) -> None:
    Path("empty.trace.jsonl").touch()
    done = cli("traces", "show", "empty.trace.jsonl")
    assert done.exit_code == 1
    assert "Delete it and start the run again" in done.stderr


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_a_trace_of_a_newer_version_is_refused_in_words(
    cli: Any, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = {"t": "header", "v": 99, "format": "concertino-trace", "run": "x"}
    with monkeypatch.context() as later:
        later.setattr("concertino.traces.journal_line.FORMAT_VERSION", 99)
        Journal.create("new.trace.jsonl", header).close()
    done = cli("traces", command, "new.trace.jsonl")
    assert done.exit_code == 1
    assert "new.trace.jsonl" in done.stderr
    assert "99" in done.stderr


def test_an_unreadable_trace_is_a_line_of_the_list(cli: Any, trace: Path) -> None:
    trace.write_bytes(b"rubbish")
    assert "not a trace" in json.loads(cli("traces", "list", "--json").stdout)[0]["error"]
    assert "unreadable" in cli("traces", "list").stdout


def test_a_damaged_trace_is_shown_up_to_the_damage(cli: Any, trace: Path) -> None:
    data = trace.read_bytes()
    trace.write_bytes(data[: len(data) * 2 // 3])
    done = cli("traces", "show")
    assert done.exit_code == 0
    assert "Round 1" in done.stdout
    assert "damaged, shown up to there" in done.stderr
