"""`concertino sessions`: conversations that `concertino run --session` keeps, listed, shown, forked and deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from concertino.core.errors import TraceError, UsageError

from . import complete
from .options import common_options
from .output import counted, one_line, show_money, write_json, write_table
from .terminal import say

if TYPE_CHECKING:
    from concertino.runs.session import Session, SessionTurn

_QUESTION = 200
"""Characters of a question in the list; `--json` has all."""


def _folder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    path = click.Path(path_type=Path)
    text = "The folder of traces; by default that of the settings."
    return click.option("--folder", type=path, metavar="FOLDER", help=text)(function)


@click.group("sessions")
def sessions() -> None:
    """List, show, fork and delete conversations; `concertino run --session NAME` begins and continues one."""


@sessions.command("list")
@_folder_option
@common_options
def list_(folder: Path | None, as_json: bool) -> None:
    """List the sessions, the one with the newest turn first.

    JSON: a list of {"name", "path", "turns", "question", "usage", "at"}: the last question, and seconds since 1970 of
    the last turn; {"name", "path", "error"} for one that cannot be read
    """
    from concertino.runs.session import Session

    found = Session.all(folder)
    lines = [_line(session) for session in found]
    if as_json:
        write_json(lines)
    elif not lines:
        where = _store(folder).folder
        say(f'There is no session in {where}; concertino run "…" --session NAME begins one.')
    else:
        write_table(("SESSION", "TURNS", "COST", "LAST", "QUESTION"), [_cells(line) for line in lines])


def _line(session: Session) -> dict[str, Any]:
    data: dict[str, Any] = {"name": session.name, "path": str(session.path)}
    try:
        turns = session.turns
    except TraceError as error:
        return {**data, "error": str(error)}
    last = turns[-1] if turns else None
    return {
        **data,
        "turns": len(turns),
        "question": last.question if last else None,
        "usage": session.usage.to_json(),
        "at": last.at if last else None,
    }


def _cells(line: dict[str, Any]) -> tuple[object, ...]:
    if "error" in line:
        return (line["name"], "-", "-", "-", f"unreadable: {line['error']}")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(line["at"])) if line["at"] else "-"
    cost = show_money(line["usage"].get("usd", 0.0))
    return (line["name"], line["turns"], cost, when, one_line(line["question"] or "-", _QUESTION))


@sessions.command("show")
@click.argument("name", shell_complete=complete.sessions)
@_folder_option
@common_options
def show(name: str, folder: Path | None, as_json: bool) -> None:
    """Show a session: its questions and answers, and the run of each turn.

    JSON: {"name", "path", "usage", "turns": [{"run_id", "question", "observed", "answer", "stop", "usage", "at"}]}
    """
    session = _existing(name, folder)
    turns = session.turns
    if as_json:
        data = {"name": session.name, "path": str(session.path), "usage": session.usage.to_json()}
        write_json({**data, "turns": [turn.to_json() for turn in turns]})
        return
    for number, turn in enumerate(turns, 1):
        say(_shown(number, turn))
    usage = session.usage
    tokens = f"{usage.input_tokens:,} + {usage.output_tokens:,} tokens"
    say(f"{counted(len(turns), 'turn')}, {counted(usage.calls, 'call')}, {show_money(usage.usd)}, {tokens}")


def _shown(number: int, turn: SessionTurn) -> str:
    answer = turn.answer if turn.answer is not None else f"(no answer: {one_line(turn.stop)})"
    return f"{number}. {turn.question.strip()}\n   [{one_line(turn.run_id)}]\n{answer}\n"


@sessions.command("fork")
@click.argument("name", shell_complete=complete.sessions)
@click.argument("new")
@_folder_option
@common_options
def fork(name: str, new: str, folder: Path | None, as_json: bool) -> None:
    """Begin the session NEW with the turns of NAME; both continue independently.

    JSON: {"name", "path", "turns"}, the number of turns
    """
    twin = _existing(name, folder).fork(new)
    turns = len(twin.turns)
    if as_json:
        write_json({"name": twin.name, "path": str(twin.path), "turns": turns})
    else:
        say(f'{twin.path}: {counted(turns, "turn")} of {name}; continue: concertino run "…" --session {new}')


@sessions.command("delete")
@click.argument("name", shell_complete=complete.sessions)
@click.option("--traces", "with_traces", is_flag=True, help="Delete the traces of its runs, too.")
@_folder_option
@common_options
def delete(name: str, with_traces: bool, folder: Path | None, as_json: bool) -> None:
    """Delete a session. Traces that another session of the folder holds stay.

    JSON: {"name", "path", "turns", "traces"}: the number of turns, and whether traces were deleted
    """
    session = _existing(name, folder)
    turns = len(session.turns)
    try:
        session.delete(traces=with_traces)
    except OSError as error:
        raise UsageError(f"{session.path}: cannot be deleted: {error.strerror}") from error
    if as_json:
        write_json({"name": name, "path": str(session.path), "turns": turns, "traces": with_traces})
    else:
        say(f"{session.path}: deleted, {counted(turns, 'turn')}{' with their traces' if with_traces else ''}")


def _store(folder: Path | None) -> Any:
    from concertino.traces import TraceStore

    return TraceStore(folder)


def _existing(name: str, folder: Path | None) -> Session:
    """A session that is there.

    Raises:
        UsageError: it is not; names those that are.
    """
    from concertino.runs.session import Session
    from concertino.schema import suggestion

    session = Session(name, folder)
    if not session.path.is_file():
        known = [each.name for each in Session.all(folder)]
        there = suggestion(name, known) if known else f'concertino run "…" --session {name} begins it'
        raise UsageError(f"there is no session {name!r} in {session.store.folder}; {there}")
    return session
