"""What a person sees of a run: the live view and its parts, safe and short texts."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from concertino.cli.drive import guarded
from concertino.cli.live import LiveView
from concertino.cli.output import clean, one_line, show_arguments, show_money
from concertino.cli.plain import PlainView
from concertino.traces.board import Board
from rich.console import Console

Record = Mapping[str, Any]


def intent(id_: str, name: str, at: float, parent: str = "", **arguments: object) -> Record:
    record = {"t": "intent", "id": id_, "name": name, "kind": "agent", "at": at, "arguments": arguments}
    return {**record, "parent": parent} if parent else record


def result(id_: str, name: str, status: str, times: tuple[float, float], **more: object) -> Record:
    return {"t": "result", "id": id_, "name": name, "status": status, "started": times[0], "ended": times[1], **more}


ERROR = {"code": "raised", "message": "ValueError: \x1b[31mno"}
LONG = "A long question " * 9
RUN: Sequence[Record] = [
    {"t": "run", "run": "r1", "question": "How many?", "at": 1e9, "setup": {"budget": {"usd": 0.5, "calls": 10}}},
    {"t": "ask", "id": "ask.1", "role": "orchestrator", "model": "m/lead", "messages": [], "at": 0.0},
    {
        "t": "reply",
        "id": "ask.1",
        "role": "orchestrator",
        "reply": {"text": "<reasoning>Look it up.</reasoning><tool_call>{}</tool_call>"},
        "observation": {"started": 0.0, "ended": 1.0, "usage": {"usd": 0.1, "input_tokens": 900}},
    },
    {
        "t": "plan",
        "round": 1,
        "at": 1.0,
        "calls": [{"id": str(i), "name": "solve", "arguments": {"text": LONG, "n": i}} for i in (1, 2)],
    },
    intent("1.1", "p/solve", 1.0, text=LONG, n=1),
    intent("1.2", "p/solve", 1.0, text=LONG, n=2),
    intent("1.1/1", "p/model", 1.1, parent="1.1"),
    result("1.1/1", "p/model", "OK", (1.1, 1.9), parent="1.1", content="x"),
    result("1.1", "p/solve", "OK", (1.0, 2.0), content="4", usage={"calls": 1, "usd": 0.15}),
    result("1.2", "p/solve", "EXEC_ERR", (1.0, 3.0), error=ERROR, usage={"calls": 1}),
    {"t": "end", "answer": "4", "stop": "answered", "detail": "", "usage": {"calls": 2, "usd": 0.25}, "at": 3.5},
]


def board_of(records: Sequence[Record]) -> Board:
    board = Board()
    for record in records:
        board.apply(record)
    return board


def screen(records: Sequence[Record], width: int, **options: Any) -> str:
    """Everything that the live view writes for some records, on a terminal of that width."""
    file = io.StringIO()
    console = Console(file=file, width=width, height=30, force_terminal=True, highlight=False, **options)
    board = Board()
    with LiveView(board, console) as view:
        for record in records:
            board.apply(record)
            view.show(record)
    return file.getvalue()


def region(records: Sequence[Record], width: int) -> list[str]:
    """What the live view keeps at the bottom of a terminal of 30 lines."""
    file = io.StringIO()
    console = Console(file=file, width=width, height=30, force_terminal=True, highlight=False)
    console.print(LiveView(board_of(records), console)._render())
    return plain(file.getvalue())


def plain(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "\n").splitlines()


def test_the_board_adds_up_usage_once_and_nests_calls_in_agents() -> None:
    board = board_of(RUN[:-1])
    assert board.usage.usd == pytest.approx(0.25)
    assert [row.name for row in board.chapters[0].rows[0].rows] == ["p/model"]
    assert board.statuses() == {"OK": 1, "EXEC_ERR": 1}
    assert board.worked == pytest.approx(1.0 + 1.0 + 2.0)
    assert list(board.limits()) == [("calls", 2.0, 10), ("usd", pytest.approx(0.25), 0.5)]
    assert board.chapters[0].thought == "Look it up."


def test_the_time_of_a_run_stands_still_at_its_end() -> None:
    assert board_of(RUN).now() == 3.5


def test_a_record_of_an_unknown_kind_is_passed_over() -> None:
    assert board_of([*RUN, {"t": "applause", "at": 3.6}]).end is not None


@pytest.mark.parametrize("width", [80, 160])
def test_the_live_view_keeps_its_columns_within_the_width(width: int) -> None:
    lines = plain(screen(RUN, width))
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if re.match(r" . solve", line) and ("OK" in line or "EXEC_ERR" in line)]
    assert len({line.index("OK" if "OK" in line else "EXEC_ERR") for line in rows}) == 1
    assert any("raised: ValueError: \\x1b[31mno" in line for line in lines)


def test_a_wide_terminal_shows_when_the_calls_ran() -> None:
    assert not any("━━" in line and "solve" in line for line in plain(screen(RUN, 80)))
    assert any("━━" in line and "solve" in line for line in plain(screen(RUN, 160)))


def test_the_live_view_shows_what_runs_and_what_is_left() -> None:
    lines = region(RUN[:7], width=100)
    assert any("p/model" in line and "running" in line for line in lines)
    assert any("$0.4000 of $0.5000 left" in line for line in lines)
    assert not any("thinking" in line for line in lines)
    assert "orchestrator m/lead is thinking" in "\n".join(region(RUN[:2], width=100))


def test_no_color_leaves_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert re.search(r"\x1b\[[0-9;]*3[1-7]m", screen(RUN, 100))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[1-7]m", screen(RUN, 100))


def test_a_round_of_many_calls_leaves_the_totals_in_sight() -> None:
    calls = [{"id": str(i), "name": f"tool{i}", "arguments": {}} for i in range(100)]
    started = [intent(f"1.{i}", f"p/tool{i}", 0.1) for i in range(50, 100)]
    records = [RUN[0], {"t": "plan", "round": 1, "at": 0.1, "calls": calls}, *started]
    lines = region(records, width=80)
    assert len(lines) < 30
    assert any("tool50" in line for line in lines), "calls under way come first"
    assert re.search(r"and \d+ more", "\n".join(lines))
    assert "50 running" in lines[-1]


def test_plain_lines_tell_a_retry_and_a_stall(capsys: pytest.CaptureFixture[str]) -> None:
    retry = {
        "t": "retry",
        "id": "1.1",
        "name": "p/solve",
        "attempt": 1,
        "failure": "throttled",
        "message": "429",
        "delay": 0.5,
    }
    stall = {"t": "stall", "id": "1.1", "name": "p/solve", "seconds": 0.3, "where": "solve.py:3"}
    board = board_of(RUN[:6])
    for record in (retry, stall):
        board.apply(record)
        PlainView(board).show(record)
    lines = capsys.readouterr().err.splitlines()
    assert "1.1 p/solve again in 0.5 s (throttled): 429" in lines[0]
    assert "1.1 p/solve blocked the event loop 0.3 s: solve.py:3" in lines[1]


def test_a_view_that_fails_is_dropped_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Record] = []

    def show(record: Record) -> None:
        seen.append(record)
        raise ValueError("no terminal")

    guard = guarded(show)
    guard({"t": "run"})
    guard({"t": "end"})
    assert len(seen) == 1
    assert "the view failed and is switched off; the run continues" in caplog.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\u202eb", "a\\u202eb"),
        ("two\r\nlines", "two\nlines"),
        ("lone \ud800", "lone \\ud800"),
        ("grüße 你好", "grüße 你好"),
    ],
)
def test_no_text_can_command_the_terminal(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_long_values_are_cut_before_short_ones() -> None:
    shown = show_arguments({"text": "a long question " * 9, "model": "swift", "n": 3}, 48)
    assert len(shown) <= 48
    assert shown.endswith('model="swift", n=3')


def test_one_line_has_at_most_the_width_and_no_line_break() -> None:
    assert one_line("a\n b\tc", 4) == "a b…"


def test_small_money_is_not_shown_as_none() -> None:
    assert [show_money(usd) for usd in (0, 0.0000251, 0.0158)] == ["$0.0000", "$0.000025", "$0.0158"]
