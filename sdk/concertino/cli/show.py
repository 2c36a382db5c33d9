"""A run shown to a person or a program: live, as plain lines, as events or as JSON; shared by `run` and `demo`.

Fresh or resumed, a run is a function that begins it. Whatever happens, the message says where the run is kept and how
to go on.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from concertino.core.display_text import one_line
from concertino.core.documents import why_unusable
from concertino.core.errors import ConcertinoError, UsageError
from concertino.traces.board import Board

from .drive import choose_view, drive
from .failures import Interrupted, OutputLost
from .options import PoolChoice
from .output import write_json
from .summary import write_summary
from .terminal import ask, confirm, say
from .written import AnswerPrinter

if TYPE_CHECKING:
    from concertino.core.approval import ApprovalRequest, Decision
    from concertino.core.events import Event
    from concertino.runs.run import Run

Begin = Callable[[Callable[["Event"], None]], Awaitable["Run"]]
Decisions = Mapping[str, "Decision"]


@dataclass(frozen=True)
class Display:
    """How a run is shown.

    Attributes:
        live: None means live on a terminal only.
        stream: whether models are asked for text as it is written; None means on a terminal only.
        quiet: the answer alone.
        typed: the answer is JSON, which is shown when it has been validated.
    """

    live: bool | None = None
    as_json: bool = False
    events: bool = False
    stream: bool | None = None
    quiet: bool = False
    typed: bool = False

    @property
    def for_programs(self) -> bool:
        """Whether stdout holds JSON."""
        return self.as_json or self.events

    @property
    def streams(self) -> bool:
        """Whether models are asked for text as it is written."""
        if self.stream is not None:
            return self.stream
        return not self.for_programs and sys.stdout.isatty()

    @property
    def may_ask(self) -> bool:
        """Whether a person sits at the terminal."""
        return not self.for_programs and at_a_terminal()


def show_run(
    begin: Begin,
    path: Path | None,
    display: Display,
    resume_with: PoolChoice | None = None,
    again: Callable[[Decisions], Begin] | None = None,
    more: Mapping[str, object] | None = None,
) -> Run:
    """Run it, show it live, and print the result; in a terminal, ask about calls that wait for approval.

    Args:
        path: its trace.
        resume_with: what the pool was chosen by; None if it cannot be chosen again.
        again: begins the rest of a suspended run, given decisions.
        more: further lines of the summary.

    Raises:
        RunError: it ended without an answer.
    """
    from concertino.runs.run import RunError

    board = Board()
    printer = AnswerPrinter() if display.streams and not (display.for_programs or display.typed) else None
    view = choose_view(
        board,
        live=display.live,
        as_json=display.as_json,
        events=display.events,
        quiet=display.quiet,
        answer=printer,
    )
    how = _resume_command(path, resume_with)
    try:
        done = drive(begin, board, view)
        while done.pending and again is not None and display.may_ask:
            done = drive(again(ask_about(done.pending)), board, view)
        _write(done, board, path, display, printer.shown if printer is not None else "", more or {})
    except (Interrupted, click.Abort):
        if not (display.for_programs or display.quiet):
            write_summary(board, path)
        raise Interrupted(f"cancelled{how}") from None
    except Exception as error:
        told = _told(error, board, path, how)
        if told is error:
            raise
        raise told from error
    if not done.ok:
        raise RunError(_no_answer(done, how), done)
    return done


def _told(error: Exception, board: Board, path: Path | None, how: str) -> Exception:
    """An error with where the run is kept, and what to do."""
    from concertino.runs.run import RunError

    if isinstance(error, OutputLost):
        kept = "" if path is None else f"; the run is kept: concertino traces show {shlex.quote(str(path))}"
        return OutputLost(f"{error}{kept}")
    system = next((each for each in (error, error.__cause__) if isinstance(each, OSError)), None)
    if system is not None and path is not None and not board.run_id:  # before its first record
        return UsageError(
            f"the run cannot be recorded in {path.parent}: {why_unusable(system)}; record it elsewhere with --trace "
            "FOLDER, or not at all with --no-trace"
        )
    if isinstance(error, ConcertinoError):
        return error
    return RunError(f"the run crashed: {type(error).__name__}: {error}{how}")


def _write(
    done: Run, board: Board, path: Path | None, display: Display, shown: str, more: Mapping[str, object]
) -> None:
    """Print the result, without an answer that is on the terminal already."""
    if display.events:
        return
    if display.as_json:
        write_json({**done.to_json(), "output": done.output} if display.typed else done.to_json())
        return
    answer = json.dumps(done.output, indent=2, ensure_ascii=False) if display.typed and done.ok else done.answer
    stands = bool(shown) and shown == answer
    if not display.quiet:
        write_summary(board, path, done.critical_path(), answer=answer, shown=stands, more=more)
    elif answer is not None and not stands:
        say(answer)


def at_a_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_about(pending: Sequence[ApprovalRequest]) -> Decisions:
    """Ask a person in the terminal about each call."""
    from concertino.core.approval import Approve, Deny

    decisions: dict[str, Any] = {}
    for request in pending:
        # In full: what is cut away may be what matters.
        shown = json.dumps(request.arguments, ensure_ascii=False, indent=2)
        say(f"\n{one_line(request.call_id)} {one_line(request.name)} waits for approval:\n{shown}", error=True)
        if confirm("Let it run?"):
            decisions[request.call_id] = Approve()
        else:
            reason = ask("Why not? (the model reads it)", default="", show_default=False)
            decisions[request.call_id] = Deny(reason)
    return decisions


def _resume_command(path: Path | None, choice: PoolChoice | None) -> str:
    """How to resume, as the end of a message."""
    if path is None or choice is None:
        return ""
    return f"; resume with: concertino run --resume {shlex.quote(str(path))} {choice}".rstrip()


def _no_answer(done: Run, how: str) -> str:
    if done.pending:
        step = f"{how.removeprefix('; ')} --approve {done.pending[0].call_id}" if how else "run it with a trace"
        return f"the run is suspended: {done.detail}; {step}"
    trace = "see its trace" if done.path else "run it without --no-trace to see more"
    steps = {
        "budget": "give it a larger --budget",
        "deadline": "give it more seconds in --budget",
        "rounds": "give it more rounds in --budget, or --set max_rounds=N",
        "format": f"another --model may follow the format; {trace}",
        "model": "give another --model, or correct what keeps it from answering",
    }
    step = steps.get(done.stop, trace)
    # One line: the detail may quote a whole reply.
    detail = f": {one_line(done.detail, 300)}" if done.detail else ""
    return f"the run ended without an answer: {done.stop}{detail}; {step}"
