"""`concertino traces`: recorded runs, listed, shown, followed while they are written, replayed, exported and shared."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from concertino.core.errors import TraceError, UsageError
from concertino.core.private_files import open_private

from . import complete
from .failures import Failed
from .group import OpenGroup, part_of_plugin
from .options import common_options, make_strategy, view_options
from .output import one_line, show_money, write_json, write_records, write_table
from .terminal import json_stream, say

if TYPE_CHECKING:
    from concertino.traces import Summary, TraceStore

_QUESTION = 200
"""Characters of a question in the list; `--json` has all."""


def _folder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    path = click.Path(path_type=Path)
    text = "The folder of traces; by default that of the settings."
    return click.option("--folder", type=path, metavar="FOLDER", help=text)(function)


@click.group("traces", cls=OpenGroup, epilog="Plugins may add commands; concertino-view adds `concertino traces html`.")
def traces() -> None:
    """List, show, follow, replay, export and share recorded runs.

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
        say(f"There is no trace in {store.folder}; `concertino run` and `concertino demo` write them.")
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
    store = _store(folder)
    if as_json:
        found = store.load(trace)
        write_records({"summary": found.summary().to_json(), "setup": found.setup}, found.records)
        return
    from .trace_report import write_report

    _warn(*write_report(store.find(trace)))


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
    from concertino.traces.blobs import BlobStore
    from concertino.traces.journal_reader import tail_journal
    from concertino.traces.records import unpacked

    blobs = BlobStore(path)
    for record in tail_journal(path, until=ended):
        if record["n"]:  # the header has number 0
            yield unpacked(record, blobs)


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
    from concertino.runs.trace_replay import replay_file as drive_again

    if settings and not strategy:
        raise UsageError("--set changes a strategy; name it with --strategy")
    found, done = drive_again(_store(folder).find(trace), make_strategy(strategy, settings) if strategy else None)
    end = found.end or {"answer": None, "stop": "unfinished"}
    recorded = {"answer": end["answer"], "stop": end["stop"]}
    same = recorded == {"answer": done.answer, "stop": done.stop}
    if as_json:
        data = {"run_id": found.run_id, "answer": done.answer, "stop": done.stop, "detail": done.detail}
        write_json({**data, "recorded": recorded, "same": same})
    else:
        say(done.answer if done.answer is not None else f"no answer: {one_line(done.stop)}: {done.detail}")
        told = "the same end as recorded" if same else _difference(recorded)
        say(f"{one_line(found.run_id)}: {told}", error=True)
    if not same and not strategy:
        raise Failed("" if as_json else "the replay ended otherwise than the run; a strategy has changed since")


def _difference(recorded: dict[str, Any]) -> str:
    return f"recorded was {one_line(recorded['stop'])}: {one_line(recorded['answer'], 200)}"


@traces.command("export")
@click.argument("trace", default="last", shell_complete=complete.traces)
@click.option("--format", "form", type=click.Choice(["json", "jsonl"]), default="json", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="A file instead of stdout.")
@click.option("--otlp", metavar="URL", help="Send it as spans to a receiver of OpenTelemetry instead.")
@_folder_option
@common_options
@click.pass_context
def export(
    ctx: click.Context, trace: str, form: str, output: Path | None, otlp: str | None, folder: Path | None, as_json: bool
) -> None:
    """Write a trace for other programs, large values included: one JSON object, or one record a line.

    With --otlp, which comes with concertino-otel, its spans go to a receiver such as http://127.0.0.1:4318. What is
    sent, the table [providers.otel] of concertino.toml says; prompts and results are not.

    \b
    JSON: {"version", "summary": {as `traces list`}, "records"}; jsonl: the records;
          with --otlp: {"run_id", "trace_id", "receiver", "sent", "rejected", "over"}
    """
    path = _store(folder).find(trace)
    if otlp is not None:
        if output is not None:
            raise UsageError("--output is a file and --otlp a receiver; give one of them")
        ctx.invoke(part_of_plugin("traces export --otlp"), trace=path, url=otlp, as_json=as_json)
        return
    damage = _export(path, form == "json" or as_json, output)
    _warn(path, damage)


def _export(path: Path, whole: bool, output: Path | None) -> str:
    """Write a trace, record by record. Gives what is wrong with its file."""
    from concertino.traces import VERSION, Trace
    from concertino.traces.records import TraceReading

    if whole:
        found = Trace.load(path)
        head = {"version": VERSION, "summary": found.summary().to_json()}
        with _opened(output) as file:
            write_records(head, found.records, file)
        return found.damage
    reading = TraceReading(path, hold=False)
    records = Trace.checked(reading)
    encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for every record
    lines = (f"{encode(record)}\n".encode("utf-8", "replace") for record in records)
    first = next(lines)  # raises for another kind of file, before the output is replaced
    with _opened(output) as file:
        file.write(first)
        file.writelines(lines)
    return str(reading.damage.reason) if reading.damage else ""


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """Where the export goes; as bytes: texts may hold half a character, and terminals have encodings of their own."""
    if output is None:
        stream = json_stream()
        yield stream
        stream.flush()
        return
    try:
        with os.fdopen(open_private(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            yield file
    except OSError as error:
        raise UsageError(f"{output}: cannot be written: {error.strerror}") from error


@traces.command("redact")
@click.argument("trace", default="last", shell_complete=complete.traces)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", required=True, help="The copy.")
@click.option("--keep", multiple=True, metavar="KIND", help="Leave in: emails, homes or users. May be repeated.")
@_folder_option
@common_options
def redact(trace: str, output: Path, keep: tuple[str, ...], folder: Path | None, as_json: bool) -> None:
    """Write a copy of a trace that can be shared, and say what was taken out.

    Taken out are secrets, addresses of mail, folders and names of users, bytes of attachments and ids of tokens. Read
    the copy before you share it: what is private in plain words, only you can see.

    JSON: {"path", "run_id", "records", "taken_out": {kind: how often}}
    """
    from concertino.traces.redacted_copy import KINDS, write_redacted

    found = _store(folder).load(trace)
    done = write_redacted(found, output, keep=keep)
    if as_json:
        write_json(done.to_json())
    else:
        say(f"{done.path}: {done.records} records")
        write_table(
            ("TAKEN OUT", "TIMES", "WHAT"), [(kind, count, KINDS[kind]) for kind, count in done.taken_out.items()]
        )
    _warn(found.path or output, found.damage)


@traces.command("key")
@common_options
def key(as_json: bool) -> None:
    """Make a key that seals traces: put it into CONCERTINO_TRACE_KEY.

    Traces and sessions that are begun while the variable is set can be read with this key alone. Keep it in a safe
    place: without it they are lost.

    JSON: {"key"}
    """
    from concertino.traces.sealing import new_key

    made = new_key()
    if as_json:
        write_json({"key": made})
    else:
        say(made)


def _store(folder: Path | None) -> TraceStore:
    from concertino.traces import TraceStore

    if folder is not None and not folder.is_dir():
        raise UsageError(
            f"--folder {folder}: {'it is a file' if folder.exists() else 'folder not found'}; give a folder"
        )
    return TraceStore(folder)


def _warn(path: Path, damage: str) -> None:
    if damage:
        say(f"{one_line(path)}: damaged, shown up to there: {damage}", error=True)
