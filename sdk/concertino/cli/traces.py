"""`concertino traces`: recorded runs, listed, shown, followed while they are written, replayed and exported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from concertino.core.errors import TraceError, UsageError

from . import complete
from .failures import Failed
from .options import common_options, make_strategy, view_options
from .output import clean, one_line, show_money, write_json, write_table

if TYPE_CHECKING:
    from concertino.traces import Summary, Trace, TraceStore

_QUESTION = 200
"""Characters of a question in the list; `--json` has all."""


def _folder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    path = click.Path(path_type=Path)
    text = "The folder of traces; by default that of the settings."
    return click.option("--folder", type=path, metavar="FOLDER", help=text)(function)


@click.group("traces")
def traces() -> None:
    """List, show, follow, replay and export recorded runs.

    A TRACE is a file, a run id or its beginning, or `last`.
    """


@traces.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The newest so many.")
@_folder_option
@common_options
def list_(limit: int, folder: Path | None, as_json: bool) -> None:
    """List the newest traces, newest first.

    \b
    JSON: a list of {"run_id", "path", "question", "answer", "stop", "rounds", "calls",
          "failed", "usd", "units", "seconds", "damage"}; {"error"} for an unreadable file
    """
    store = _store(folder)
    lines = store.summaries(limit)
    if as_json:
        write_json([{"error": str(line)} if isinstance(line, TraceError) else line.to_json() for line in lines])
    elif not lines:
        click.echo(f"There is no trace in {store.folder}; `concertino run` and `concertino demo` write them.")
    else:
        titles = ("RUN", "ENDED", "CALLS", "FAILED", "COST", "SECONDS", "QUESTION")
        write_table(
            titles, [_line(line) for line in lines], {"answered": "green", "crashed": "red", "unfinished": "yellow"}
        )


def _line(line: Summary | TraceError) -> tuple[object, ...]:
    if isinstance(line, TraceError):
        return ("unreadable", "-", "-", "-", "-", "-", line)
    cost = show_money(line.usd)
    return (
        line.run_id,
        line.stop,
        line.calls,
        line.failed,
        cost,
        f"{line.seconds:.1f}",
        one_line(line.question, _QUESTION),
    )


@traces.command("show")
@click.argument("trace", default="last", shell_complete=complete.traces)
@_folder_option
@common_options
def show(trace: str, folder: Path | None, as_json: bool) -> None:
    """Show a run: its rounds, the calls inside agents, results and errors, and every check by a guard.

    \b
    JSON: {"summary": {as `traces list`}, "setup", "records"}
    """
    found = _store(folder).load(trace)
    if as_json:
        write_json({"summary": found.summary().to_json(), "setup": found.setup, "records": found.records})
        return
    from rich.console import Console

    from concertino.traces.board import Board

    from .guard_checks import write_checks
    from .rounds import render_round
    from .summary import write_summary

    board = Board()
    for record in found.records:
        board.apply(record)
    console = Console(highlight=False)
    click.echo(f"run {clean(found.run_id)}\n{clean(found.question)}\n")
    for chapter in board.chapters:
        console.print(render_round(board, chapter, console.width, nested=True, full=True))
    if board.checks:
        write_checks(board)
    write_summary(board, found.path, listed=True)
    _warn(found)


@traces.command("follow")
@click.argument("trace", default="last", shell_complete=complete.traces)
@_folder_option
@view_options
@click.option("--events", is_flag=True, help="Print one line of JSON per record, as it is written.")
@common_options
def follow(trace: str, folder: Path | None, live: bool | None, events: bool, as_json: bool) -> None:
    """Watch a run that another process is writing, until it ends or you press Ctrl-C.

    JSON, --events: the records, one a line.
    """
    from concertino.traces.board import Board

    from .drive import choose_view, guarded
    from .summary import write_summary

    path = _store(folder).find(trace)
    board = Board()
    view = choose_view(board, live=live, events=events or as_json)
    tick = guarded(lambda _: view.tick())

    def still() -> bool:
        # Asked at every look at the file, so it also moves the view while nothing is written.
        tick({})
        return board.end is not None

    with view:
        for record in _records(path, still):
            board.apply(record)
            view.show(record)
    if not (events or as_json):
        write_summary(board, path)


def _records(path: Path, ended: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """The records of a trace as they are written, without its header."""
    from concertino.traces.blobs import BlobStore, unpack
    from concertino.traces.journal_reader import tail_journal

    blobs = BlobStore(path)
    for record in tail_journal(path, until=ended):
        if record["t"] != "header":
            yield unpack(record, blobs)


@traces.command("replay")
@click.argument("trace", default="last", shell_complete=complete.traces)
@_folder_option
@click.option(
    "--strategy",
    metavar="NAME",
    help="Read the same texts with another strategy.",
    shell_complete=complete.strategies,
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of that strategy.",
    shell_complete=complete.strategy_settings,
)
@common_options
def replay(trace: str, folder: Path | None, strategy: str | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Repeat a run from its trace alone: no model is asked, nothing is called, nothing is spent.

    Exit code: 0 if it ends as recorded, else 1; always 0 with --strategy, which may well end otherwise.

    JSON: {"run_id", "answer", "stop", "detail", "recorded": {"answer", "stop"}, "same"}
    """
    from concertino.runs.trace_replay import replay as drive_again

    if settings and not strategy:
        raise UsageError("--set changes a strategy; name it with --strategy")
    found = _store(folder).load(trace)
    done = drive_again(found, make_strategy(strategy, settings) if strategy else None)
    summary = found.summary()
    recorded = {"answer": summary.answer, "stop": summary.stop}
    same = recorded == {"answer": done.answer, "stop": done.stop}
    if as_json:
        data = {"run_id": found.run_id, "answer": done.answer, "stop": done.stop, "detail": done.detail}
        write_json({**data, "recorded": recorded, "same": same})
    else:
        click.echo(clean(done.answer) if done.answer is not None else f"no answer: {done.stop}: {clean(done.detail)}")
        click.echo(f"{found.run_id}: {'the same end as recorded' if same else _difference(recorded)}", err=True)
    if not same and not strategy:
        raise Failed("" if as_json else "the replay ended otherwise than the run; a strategy has changed since")


def _difference(recorded: dict[str, Any]) -> str:
    return f"recorded was {recorded['stop']}: {one_line(recorded['answer'], 200)}"


@traces.command("export")
@click.argument("trace", default="last", shell_complete=complete.traces)
@click.option("--format", "form", type=click.Choice(["json", "jsonl"]), default="json", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="A file instead of stdout.")
@_folder_option
@common_options
def export(trace: str, form: str, output: Path | None, folder: Path | None, as_json: bool) -> None:
    """Write a trace for other programs, large values included: one JSON object, or one record a line.

    JSON: {"version", "summary": {as `traces list`}, "records"}; jsonl: the records
    """
    found = _store(folder).load(trace)
    if form == "json" or as_json:
        text = json.dumps(found.export(), indent=2, ensure_ascii=False)
    else:
        text = "\n".join(json.dumps(record, ensure_ascii=False) for record in found.records)
    _warn(found)
    if output is None:
        # As bytes: texts of models may hold half a character, and terminals have encodings of their own.
        click.echo(text.encode("utf-8", "replace"))
        return
    try:
        output.write_text(f"{text}\n", encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {error.strerror}") from error


def _store(folder: Path | None) -> TraceStore:
    from concertino.traces import TraceStore

    if folder is not None and not folder.is_dir():
        raise UsageError(
            f"--folder {folder}: {'it is a file' if folder.exists() else 'folder not found'}; give a folder"
        )
    return TraceStore(folder)


def _warn(found: Trace) -> None:
    if found.damage:
        click.echo(f"{found.path}: damaged, shown up to there: {found.damage}", err=True)
