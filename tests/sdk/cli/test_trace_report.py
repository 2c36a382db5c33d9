"""`traces show` of long runs: the lines that rich would print, round by round, while the file is read."""

from __future__ import annotations

import io
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from concertino.cli.round_lines import RoundLines, terminal_columns
from concertino.cli.rounds import render_round
from concertino.cli.trace_report import write_report
from concertino.core.display_text import one_line
from concertino.core.errors import TraceError
from concertino.traces.board import Board, Chapter, Row
from concertino.traces.journal import Journal
from concertino.traces.trace import header
from rich.console import Console

TEXTS = [
    "",
    "short",
    "some words of a text " * 30,
    "x" * 400,
    "東京タワーは高い " * 40,
    "a  b\tc\nd " * 60,
    "é – „ja“ " * 50,
]
STATUSES = ["OK", "EXEC_ERR", "PARSE_ERR", "TIMEOUT", "OK"]


def rows_of(rng: random.Random, depth: int = 0) -> list[Row]:
    rows = []
    for number in range(rng.randrange(4)):
        status = rng.choice(STATUSES)
        row = Row(f"1.{number}", rng.choice(["page", "acme/a-very-long-name-of-a-tool", "道具"]), "tool")
        row.arguments = {"query": rng.choice(TEXTS), "n": number} if rng.random() < 0.9 else rng.choice(TEXTS)
        row.state, row.status, row.started, row.ended = "done", status, rng.random(), 1 + rng.random()
        row.content = rng.choice([*TEXTS, {"a": rng.choice(TEXTS)}, 3, None])
        row.error = {} if status == "OK" else {"code": "raised", "message": rng.choice(TEXTS) or "why"}
        row.usage = {"usd": 0.0125, "units": 1} if rng.random() < 0.5 else {}
        if rng.random() < 0.2:
            row.state, row.status, row.error, row.progress = "waiting", "", {}, "3 of 10"
        row.rows = rows_of(rng, depth + 1) if depth < 2 else []
        rows.append(row)
    return rows


def by_rich(board: Board, chapter: Chapter, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(render_round(board, chapter, width, nested=True, full=True))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [20, 40, 59, 60, 80, 109, 110, 173])
def test_lines_are_those_that_rich_prints(width: int) -> None:
    rng, board = random.Random(width), Board()
    for number in range(40):
        chapter = Chapter(number, rng.choice(TEXTS), 0.25, rows_of(rng))
        lines = [line.rstrip() for line in RoundLines(board, width).of_round(chapter)]
        assert lines == by_rich(board, chapter, width)


@pytest.mark.parametrize("text", [*TEXTS, " " * 9_000 + "end", "\r\n" * 3_000 + "x\x1b[31m " * 900])
def test_a_long_text_is_cut_as_if_all_of_it_had_been_looked_at(text: str) -> None:
    whole = one_line(text)
    for width in (8, 80, 240):
        assert one_line(text, width) == (whole if len(whole) <= width else f"{whole[: width - 1]}…")


def record(number: int, status: str = "OK", content: Any = None, name: str = "page", at: float = 1.0) -> dict[str, Any]:
    error = {} if status == "OK" else {"error": {"code": "cancelled", "message": "the run was cancelled"}}
    return {
        "t": "result",
        "id": f"{number}.1",
        "name": name,
        "status": status,
        "content": content or f"page {number}",
        "started": at,
        "ended": at,
        **error,
    }


def plan(number: int) -> dict[str, Any]:
    return {"t": "plan", "round": number, "calls": [{"id": "1", "name": "page", "arguments": {"i": number}}], "at": 1.0}


def write(path: Path, *records: dict[str, Any], limit: int | None = None) -> Path:
    with Journal.create(path, header("run")) as journal:
        journal.append({"t": "run", "run": "run", "question": "Why?", "setup": {}, "at": 1.0})
        for each in records:
            journal.append(each, limit=limit)
    return path


def test_rounds_are_told_before_the_rest_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [part for number in range(1, 6) for part in (plan(number), record(number))]
    path = write(tmp_path / "run.trace.jsonl", *records, record(9, content="y" * 5_000), limit=4_000)
    for file in path.with_name(f"{path.name}.blobs").iterdir():
        file.unlink()
    with pytest.raises(TraceError, match="Copy the folder"):
        write_report(path)
    told = capsys.readouterr().out
    assert "Why?" in told
    assert "Round 1" in told


def test_a_round_that_goes_on_after_a_cancellation_is_told_as_it_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end: dict[str, Any] = {"t": "end", "answer": None, "stop": "cancelled", "detail": "", "usage": {}, "at": 1.0}
    path = write(
        tmp_path / "run.trace.jsonl",
        *(
            plan(1),
            record(1),
            plan(2),
            record(2, "EXEC_ERR"),
            end,
            record(2, content="as it ended"),
            plan(3),
            record(3),
        ),
    )
    write_report(path)
    told = capsys.readouterr().out
    assert told.count("Round 2") == 1
    assert "as it ended" in told
    assert "was cancelled" not in told
    assert "3 in 3 rounds: 3 OK" in told


def test_what_happens_to_a_call_after_its_round_was_told_is_told_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "run.trace.jsonl", plan(1), record(1), plan(2), record(2), record(1, content="later"))
    write_report(path)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("Round")] == ["Round 1", "Round 2", "Round 1"]
    assert any("what happened later" in line for line in lines)
    assert lines[-1].startswith("trace")
    assert any("→ later" in line for line in lines)


def test_what_a_report_takes_does_not_grow_with_the_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def peak(rounds: int) -> int:
        path = tmp_path / f"{rounds}.trace.jsonl"
        write(path, *(p for n in range(1, rounds) for p in (plan(n), record(n, content="x y " * 10_000))))
        tracemalloc.start()
        write_report(path)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most - len(capsys.readouterr().out)

    few, many = peak(20), peak(320)
    assert many - few < 300 * 8_000  # a fifth of the results


def test_the_width_is_that_of_the_terminal_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "133")
    assert terminal_columns() == Console().width == 133
    monkeypatch.delenv("COLUMNS")
    assert terminal_columns() == Console().width
