"""Every attack on a terminal through every way out of the command line, with the outcome of each."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import click
import pytest
from click.shell_completion import CompletionItem
from concertino.cli import terminal
from concertino.cli.drive import EventView
from concertino.cli.failures import Failed, report
from concertino.cli.live import LiveView
from concertino.cli.log import _Stderr
from concertino.cli.output import write_fields, write_records, write_table
from concertino.cli.plain import PlainView
from concertino.cli.round_lines import RoundLines
from concertino.cli.shells import Bash
from concertino.cli.show import ask_about
from concertino.cli.status_line import StatusLine
from concertino.cli.summary import write_summary
from concertino.cli.written import AnswerPrinter
from concertino.core.approval import ApprovalRequest
from concertino.core.display_text import clean, clean_json, one_line
from concertino.core.errors import UsageError
from concertino.core.html import show
from concertino.core.logs import logger_of
from concertino.traces.board import Board
from linear import assert_linear
from rich.table import Table
from rich.text import Text
from terminal_attacks import ATTACKS, EVERYTHING, INNOCENT, harm

ATTACK = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())


class Screen(io.TextIOWrapper):
    """A stream that says it is a terminal, and keeps what it gets."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="surrogatepass", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        self.flush()
        kept: Any = self.buffer
        return str(kept.getvalue().decode("utf-8", "surrogatepass"))


def written_by(entry: Callable[[str], object], text: str) -> str:
    """What stands on the terminal after an entry got a text."""
    screen = Screen()
    with redirect_stdout(screen), redirect_stderr(screen):
        entry(text)
    return screen.text()


def board(text: str) -> Board:
    """A run in which every text of a stranger is the same."""
    found = Board()
    for record in records(text):
        found.apply(record)
    return found


def records(text: str) -> list[dict[str, Any]]:
    error = {"code": "raised", "message": text}
    return [
        {"t": "run", "run": text, "question": text, "at": 1e9, "setup": {"budget": {}}},
        {"t": "ask", "id": "ask.1", "role": text, "model": text, "messages": [], "at": 0.0},
        {
            "t": "reply",
            "id": "ask.1",
            "role": text,
            "reply": {"text": text},
            "observation": {"started": 0.0, "ended": 1.0, "usage": {}},
        },
        {"t": "plan", "round": 1, "at": 1.0, "calls": [{"id": "1", "name": text, "arguments": {text: text}}]},
        {"t": "intent", "id": "1.1", "name": text, "kind": "tool", "at": 1.0, "arguments": {text: text}},
        {"t": "progress", "id": "1.1", "done": 1.0, "total": None, "message": text, "at": 1.1},
        {"t": "retry", "id": "1.1", "name": text, "attempt": 1, "failure": text, "message": text, "delay": 1.0},
        {"t": "stall", "id": "1.1", "name": text, "seconds": 0.3, "where": text},
        {"t": "result", "id": "1.1", "name": text, "status": "EXEC_ERR", "started": 1.0, "ended": 2.0, "error": error},
        {"t": "end", "answer": text, "stop": text, "detail": text, "usage": {}, "at": 3.5},
    ]


def view(kind: Callable[[Board], Any]) -> Callable[[str], None]:
    """An entry: a view that gets every record."""

    def entry(text: str) -> None:
        found = Board()
        with kind(found) as shown:
            for record in records(text):
                found.apply(record)
                shown.show(record)
                shown.tick()

    return entry


def live(text: str) -> None:
    # On a terminal of its own, which moves no cursor: what moves it is ours.
    drawn = terminal.console(file=sys.stdout, force_terminal=False, width=100)
    view(lambda found: LiveView(found, drawn))(text)


def in_columns(text: str) -> None:
    found = board(text)
    for width in (140, 100, 40):
        lines = RoundLines(found, width)
        for chapter in found.chapters:
            terminal.say_painted("\n".join(lines.of_round(chapter)))


def drawn(text: str) -> None:
    console = terminal.console(file=sys.stdout, width=80)
    table = Table(title=text)
    table.add_column(text)
    table.add_row(Text(text))
    table.add_row(text)
    console.print(table, text, Text(text, style="red"))


def streamed(text: str) -> None:
    printer = AnswerPrinter()
    for place, piece in enumerate([*text, text]):
        printer.show({"t": "text", "id": "ask.1", "attempt": 1, "kind": "answer", "text": piece, "at": place})
    printer.end()


def logged(text: str) -> None:
    handler = _Stderr(logging.DEBUG)
    logger = logger_of("security")
    logger.addHandler(handler)
    try:
        logger.warning("%s says %s", text, text)
        try:
            raise ValueError(text)
        except ValueError:
            logger.exception("it failed")
    finally:
        logger.removeHandler(handler)


def logged_by_python(text: str) -> None:
    """Python's own handler, in a program that uses the SDK."""
    handler = logging.StreamHandler(sys.stderr)
    for name in ("concertino", "concertino.security"):
        logger = logger_of("security") if name.endswith("security") else logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
        try:
            raise ValueError(text)
        except ValueError:
            logger.exception("%s failed", text)
        finally:
            logger.removeHandler(handler)
            logger.propagate = True


def asked(text: str) -> None:
    request = ApprovalRequest(text, text, {text: text}, text, text, text)
    answers = iter(["n", "no"])
    with pytest.MonkeyPatch.context() as patch:
        shown: list[str] = []
        patch.setattr("click.termui.visible_prompt_func", lambda prompt: shown.append(prompt) or next(answers))
        ask_about([request])
    sys.stdout.write("\n".join(shown))


def prompted(text: str) -> None:
    shown: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("click.termui.visible_prompt_func", lambda prompt: shown.append(prompt) or "y")
        terminal.ask(text, text)
        terminal.confirm(text)
    sys.stdout.write("\n".join(shown))


def bar(text: str) -> None:
    with terminal.progress_bar([1, 2], 2, text) as items:
        list(items)
    line = StatusLine()
    line.show(text)
    line.end()


def failed(*options: str) -> Callable[[str], None]:
    def entry(text: str) -> None:
        for kind in (UsageError, Failed, ValueError, click.UsageError, click.ClickException):
            report(kind(text), list(options))
        report(FileNotFoundError(2, text, text), list(options))

    return entry


def of_a_library(text: str) -> None:
    """What a library writes past the door: it goes through the stream that the command line puts there."""
    sys.stdout.write(terminal.guard(f"{text}\n"))
    try:
        raise RuntimeError(text)
    except RuntimeError:
        sys.stderr.write(terminal.guard(traceback.format_exc()))


ENTRIES: dict[str, Callable[[str], object]] = {
    "say": terminal.say,
    "say_on_stderr": lambda text: terminal.say(text, error=True),
    "say_in_parts": lambda text: terminal.say(text, terminal.Painted(text, "bold red"), text),
    "say_painted": lambda text: terminal.say_painted(terminal.paint(text, "dim")),
    "one_line": lambda text: sys.stdout.write(one_line(text)),
    "json": lambda text: terminal.say_json({text: [text]}),
    "json_in_pieces": lambda text: write_records({"text": text}, [{"text": text}] * 2),
    "events": view(EventView),
    "table": lambda text: write_table((text, "B", "C"), [(text, text, text), (1, text, 2)], {one_line(text): "red"}),
    "fields": lambda text: write_fields({"a": text, "b": (text, terminal.Painted(text, "red"))}),
    "plain_view": view(lambda found: PlainView(found, AnswerPrinter())),
    "live_view": live,
    "rounds": in_columns,
    "summary": lambda text: write_summary(board(text), None),
    "console": drawn,
    "streamed": streamed,
    "log": logged,
    "log_of_a_program": logged_by_python,
    "approval": asked,
    "prompt": prompted,
    "progress": bar,
    "rewritten_line": lambda text: terminal.rewrite(text, 20),
    "error": failed(),
    "error_as_json": failed("--json"),
    "error_with_traceback": failed("--debug"),
    "completion": lambda text: sys.stdout.write(Bash.format_completion(shell(), CompletionItem(text, help=text))),
    "notebook_or_shell": lambda text: show("", text),
    "library": of_a_library,
}
"""Ways out, each of which gets the text of a stranger."""

MOVE = {"progress", "rewritten_line", "library"}
"""Entries that write over their own lines. A library may colour and move, as nobody knows whose the sequence is."""


def shell() -> Any:
    found = object.__new__(Bash)
    found.word = ""
    return found


@ATTACK
@pytest.mark.parametrize("entry", [name for name in ENTRIES if name != "library"])
def test_an_attack_is_shown_and_not_obeyed(entry: str, attack: str) -> None:
    written = written_by(ENTRIES[entry], attack)
    assert harm(written, live=entry in MOVE) == []


@ATTACK
def test_a_library_gets_no_further_than_colours_and_moves(attack: str) -> None:
    written = written_by(of_a_library, attack)
    assert harm(re.sub(r"\x1b\[[0-9;]*[ABCDEFGHJKfm]|[\r\b]", "", written)) == []


@ATTACK
def test_json_on_a_terminal_has_the_same_value(attack: str) -> None:
    written = written_by(lambda text: terminal.say_json({"text": text}), attack)
    assert json.loads(written) == {"text": attack}


@ATTACK
def test_json_in_a_pipe_is_as_it_always_was(attack: str) -> None:
    pipe = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with redirect_stdout(pipe):
        terminal.say_json({"text": attack})
    kept: Any = pipe.buffer
    expected = json.dumps({"text": attack}, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    assert kept.getvalue() == expected


@ATTACK
def test_what_is_shown_once_is_shown_the_same_way_again(attack: str) -> None:
    assert clean(clean(attack)) == clean(attack)


@pytest.mark.parametrize("text", INNOCENT)
def test_languages_and_emoji_stay_as_they_are(text: str) -> None:
    assert clean(text) == text
    assert clean_json(text) == text
    assert written_by(terminal.say, text) == f"{text}\n"


@pytest.mark.parametrize("text", INNOCENT)
def test_an_answer_in_pieces_stays_as_it_is(text: str) -> None:
    def in_pieces(text: str) -> None:
        printer = AnswerPrinter()
        for sign in text:
            printer.show({"t": "text", "id": "ask.1", "attempt": 1, "kind": "answer", "text": sign})
        printer.end()

    if "\u20e3" not in text:  # a digit is shown at once
        assert written_by(in_pieces, text) == f"{text}\n"


def test_a_text_of_a_stranger_is_no_markup() -> None:
    assert "[bold red on white]x[/]" in written_by(drawn, "[bold red on white]x[/]").replace("\n", "")


def test_a_line_break_in_a_message_begins_no_record_of_the_log() -> None:
    written = written_by(logged, "x\n2026-01-01 WARNING forged")
    assert not any(line.startswith("2026") for line in written.splitlines())


@pytest.mark.parametrize(
    "piece", ["plain words\n", "你好\n", "\x1b]0;x\x07", "\u200d", "z\u0301", EVERYTHING], ids=ascii
)
def test_a_large_text_is_cleaned_in_linear_time(piece: str) -> None:
    text = piece * (500_000 // len(piece))
    assert_linear(lambda: clean(text), len(text))
