"""`concertino run`: asks the orchestrator a question and shows the run.

Fresh or resumed, a run is an `Orchestrator`, a pool and a function that begins it; `show_run` does the rest and is
shared with `concertino demo`.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from concertino.core.errors import ConcertinoError, UsageError
from concertino.traces.board import Board

from .drive import choose_view, drive
from .failures import Interrupted
from .log import log_option
from .options import (
    PoolChoice,
    check_leader,
    common_options,
    make_strategy,
    pool_options,
    read_stdin,
    view_options,
    warn_about_broken_plugins,
)
from .output import clean, write_json
from .summary import write_summary

if TYPE_CHECKING:
    from concertino.core.approval import ApprovalRequest, Decision
    from concertino.core.budget import Budget
    from concertino.core.events import Event
    from concertino.executor import Duplicates
    from concertino.pool.pool import Pool
    from concertino.runs.orchestrator import Orchestrator
    from concertino.runs.run import Run
    from concertino.testing import Recorder
    from concertino.traces import Durability

Begin = Callable[[Callable[["Event"], None]], Awaitable["Run"]]
Decisions = Mapping[str, "Decision"]


@dataclass(frozen=True)
class Display:
    """How a run is shown: `live` None means live on a terminal only."""

    live: bool | None = None
    as_json: bool = False
    events: bool = False

    @property
    def may_ask(self) -> bool:
        """Whether a person sits at the terminal."""
        return not (self.as_json or self.events) and sys.stdin.isatty() and sys.stderr.isatty()


_BEGUN_WITH = (
    "question",
    "model",
    "strategy",
    "settings",
    "budget",
    "duplicates",
    "eager",
    "shortlist",
    "no_trace",
    "durability",
    "record",
    "replay",
)
"""What `--resume` takes from the trace."""

_EXAMPLES = """\b
Examples:
  concertino run "Who wrote it, and when?" --budget usd=0.5,seconds=60
  echo "..." | concertino run - --only 'toy/*' --model toy/conductor --json
  concertino run --resume last
"""


@click.command("run", epilog=_EXAMPLES)
@click.argument("question", required=False)
@click.option("--resume", metavar="TRACE", help="Resume an interrupted run: a path, an id, or 'last'.")
@click.option("--approve", multiple=True, metavar="CALL", help="Let a call run that waits for approval, such as 2.1.")
@click.option("--deny", multiple=True, metavar="CALL=REASON", help="Do not let it run; the model reads the reason.")
@pool_options
@click.option("--model", metavar="NAME", help="The model that leads; by default the role 'orchestrator'.")
@click.option(
    "--strategy", metavar="NAME", help="The strategy, or a workflow's file; by default parallel calls in rounds."
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of the strategy.")
@click.option("--budget", default="", metavar="LIMITS", help="Such as usd=0.5,seconds=60,calls=20.")
@click.option("--duplicates", type=click.Choice(["run", "reuse", "refuse"]), default="run", help="Repeated calls.")
@click.option("--eager", is_flag=True, help="Start a call when its text is complete, while the model still writes.")
@click.option(
    "--shortlist", metavar="RANKING", help="List what a ranking puts first: scorer/best, or scorer/best,most=4."
)
@click.option("--trace", "folder", type=click.Path(path_type=Path), metavar="FOLDER", help="Where to record the run.")
@click.option("--no-trace", is_flag=True, help="Do not record the run.")
@click.option(
    "--durability",
    type=click.Choice(["process", "power"]),
    default="process",
    help="What a finished call survives: the end of the process, or a power cut.",
)
@click.option("--record", type=click.Path(path_type=Path), metavar="FILE", help="Record every call and request.")
@click.option("--replay", type=click.Path(path_type=Path), metavar="FILE", help="Answer from a recording only.")
@view_options
@click.option("--events", is_flag=True, help="Print one line of JSON per event, as it happens.")
@log_option
@common_options
def run(
    question: str | None,
    resume: str | None,
    approve: tuple[str, ...],
    deny: tuple[str, ...],
    as_json: bool,
    live: bool | None,
    events: bool,
    **options: Any,
) -> None:
    """Ask the orchestrator a question, `-` for one on stdin.

    A call that needs approval is asked about in the terminal. Without one the run is suspended; resume it with
    `--approve` or `--deny`.

    Exit code: 0 with an answer, 1 without one, 130 after Ctrl-C.

    \b
    JSON: {"id", "question", "answer", "stop", "detail", "usage", "seconds",
           "critical_path_seconds", "rounds": [{"number", "text", "issues", "observations"}],
           "pool", "trace"}; --events: the records of a trace, one a line.
    """
    display = Display(live, as_json, events)
    if resume is not None:
        _refuse_beside_resume()
        _resume(resume, options["choice"], options["folder"], display, _decisions(approve, deny))
    elif approve or deny:
        raise UsageError("--approve and --deny go with --resume: concertino run --resume TRACE --approve 2.1")
    elif question is None:
        raise UsageError('there is no question; give one: concertino run "…", or `-` to read it from stdin')
    else:
        _start(read_stdin() if question == "-" else question, display, **options)


def _refuse_beside_resume() -> None:
    """A resumed run keeps the options that it began with."""
    context = click.get_current_context()
    for parameter in context.command.params:
        fixed = parameter.name in _BEGUN_WITH
        # Only what was typed counts: defaults and the environment say nothing about a resumed run.
        if fixed and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE:
            name = parameter.opts[-1] if isinstance(parameter, click.Option) else "the question"
            raise UsageError(f"--resume keeps the options of the run; leave out {name}")


def _start(
    question: str,
    display: Display,
    *,
    choice: PoolChoice,
    model: str | None,
    strategy: str | None,
    settings: tuple[str, ...],
    budget: str,
    duplicates: str,
    eager: bool,
    shortlist: str | None,
    folder: Path | None,
    no_trace: bool,
    durability: str,
    record: Path | None,
    replay: Path | None,
) -> None:
    from concertino.core.budget import Budget
    from concertino.pool.shortlist import Shortlist
    from concertino.runs.orchestrator import Orchestrator

    if not question.strip():
        raise UsageError("the question is empty; give a text, or `-` with a text on stdin")
    limits = Budget.parse(budget)
    chosen = make_strategy(strategy, settings)
    pool = choice.open(**({"orchestrator": model} if model else {}))
    check_leader(pool)
    if not display.as_json:
        warn_about_broken_plugins()
    recording = _recording(record, replay)
    if recording is not None:
        pool = _recorded(pool, recording)
    hooks: dict[str, Any] = recording.hooks if recording else {}
    orchestrator = Orchestrator(
        "orchestrator",
        chosen,
        duplicates=cast("Duplicates", duplicates),
        eager=eager,
        arrange=Shortlist.parse(shortlist) if shortlist else None,
        **hooks,
    )
    begin, path = fresh(orchestrator, question, pool, limits, folder, keep=not no_trace, durability=durability)
    show_run(begin, path, display, resume_with=choice, again=_again(orchestrator, path, pool))
    if recording is not None:
        recording.assert_complete()


def fresh(
    orchestrator: Orchestrator,
    question: str,
    pool: Pool,
    budget: Budget | None,
    folder: Path | None,
    *,
    keep: bool = True,
    durability: str = "process",
) -> tuple[Begin, Path | None]:
    """What begins a new run, and where its trace will be."""
    from concertino.runs.orchestrator import new_run_id
    from concertino.traces import TraceStore

    # Made here, because the path of the trace has to be known before the run, for the message after Ctrl-C.
    run_id = new_run_id()
    path = TraceStore(folder).path_for(run_id) if keep else None

    def begin(listen: Callable[[Event], None]) -> Awaitable[Run]:
        return orchestrator.run(
            question,
            pool=pool,
            budget=budget,
            trace=path,
            durability=cast("Durability", durability),
            run_id=run_id,
            on_event=listen,
        )

    return begin, path


def show_run(
    begin: Begin,
    path: Path | None,
    display: Display,
    resume_with: PoolChoice | None = None,
    again: Callable[[Decisions], Begin] | None = None,
) -> Run:
    """Run it, show it live, and print the result; in a terminal, ask about calls that wait for approval.

    Args:
        path: its trace.
        resume_with: what the pool was chosen by; None if it cannot be chosen again.
        again: begins the rest of a suspended run, given decisions.

    Raises:
        RunError: it ended without an answer.
    """
    board = Board()
    view = choose_view(board, live=display.live, as_json=display.as_json, events=display.events)
    how = _resume_command(path, resume_with)
    try:
        done = drive(begin, board, view)
        while done.pending and again is not None and display.may_ask:
            done = drive(again(ask_about(done.pending)), board, view)
    except Interrupted:
        if not (display.as_json or display.events):
            write_summary(board, path)
        raise Interrupted(f"cancelled{how}") from None
    except ConcertinoError:
        raise
    except Exception as error:
        from concertino.runs.run import RunError

        raise RunError(f"the run crashed: {type(error).__name__}: {error}{how}") from error
    if display.as_json and not display.events:
        write_json(done.to_json())
    elif not display.events:
        write_summary(board, path, done.critical_path())
    if not done.ok:
        from concertino.runs.run import RunError

        raise RunError(_no_answer(done, how), done)
    return done


def ask_about(pending: Sequence[ApprovalRequest]) -> Decisions:
    """Ask a person in the terminal about each call."""
    from concertino.core.approval import Approve, Deny

    decisions: dict[str, Any] = {}
    for request in pending:
        # In full: what is cut away may be what matters.
        shown = clean(json.dumps(request.arguments, ensure_ascii=False, indent=2))
        click.echo(f"\n{request.call_id} {clean(request.name)} waits for approval:\n{shown}", err=True)
        if click.confirm("Let it run?", default=False, err=True):
            decisions[request.call_id] = Approve()
        else:
            reason = click.prompt("Why not? (the model reads it)", default="", show_default=False, err=True)
            decisions[request.call_id] = Deny(reason)
    return decisions


def _decisions(approve: tuple[str, ...], deny: tuple[str, ...]) -> Decisions:
    from concertino.core.approval import Approve, Deny

    refused = {call_id: Deny(reason) for call_id, _, reason in (text.partition("=") for text in deny)}
    if twice := sorted(set(approve) & set(refused)):
        raise UsageError(f"{twice[0]} is approved and denied; choose one")
    return {**{call_id: Approve() for call_id in approve}, **refused}


def _again(orchestrator: Orchestrator, path: Path | None, pool: Pool) -> Callable[[Decisions], Begin] | None:
    """How a suspended run is resumed; None for a run without a trace."""
    if path is None:
        return None

    def with_decisions(decisions: Decisions) -> Begin:
        return lambda listen: orchestrator.resume(path, pool=pool, on_event=listen, decisions=decisions)

    return with_decisions


def _resume_command(path: Path | None, choice: PoolChoice | None) -> str:
    """How to resume, as the end of a message."""
    if path is None or choice is None:
        return ""
    return f"; resume with: concertino run --resume {shlex.quote(str(path))} {choice}".rstrip()


def _no_answer(done: Run, how: str) -> str:
    if done.pending:
        step = f"{how.removeprefix('; ')} --approve {done.pending[0].call_id}" if how else "run it with a trace"
        return f"the run is suspended: {done.detail}; {step}"
    steps = {
        "budget": "give it a larger --budget",
        "deadline": "give it more seconds in --budget",
        "rounds": "give it more rounds in --budget, or --set max_rounds=N",
        "format": "another --model may follow the format; the trace shows what was written",
        "model": "see the model's last error in the trace",
    }
    step = steps.get(done.stop, "see its trace")
    return f"the run ended without an answer: {done.stop}{f': {done.detail}' if done.detail else ''}; {step}"


# -- resuming ----------------------------------------------------------------------------------------------------------


def _resume(name: str, choice: PoolChoice, folder: Path | None, display: Display, decisions: Decisions) -> None:
    from concertino.plugins import default_manager
    from concertino.runs.orchestrator import Orchestrator
    from concertino.strategies import BUILT_IN, strategy_by_name
    from concertino.traces import Trace, TraceStore

    path = TraceStore(folder).find(name)
    setup = Trace.load(path).setup
    named = setup["strategy"]["name"]
    # Plugins are loaded only for a strategy that is not built in.
    kind = strategy_by_name(named, {} if named in BUILT_IN else default_manager().strategies())
    pool = choice.open() if choice else _pool_of(setup)
    pool = pool.bind(**setup["roles"])
    orchestrator = Orchestrator(
        "orchestrator",
        kind.from_json(setup["strategy"]),
        duplicates=setup["duplicates"],
        eager=setup.get("eager", False),
    )

    again = _again(orchestrator, path, pool)
    assert again is not None
    show_run(again(decisions), path, display, resume_with=choice, again=again)


def _pool_of(setup: dict[str, Any]) -> Pool:
    """The installed members that a run was begun with."""
    from concertino.pool.pool import Pool

    return Pool.installed(*setup["members"])


# -- recording ---------------------------------------------------------------------------------------------------------


def _recording(record: Path | None, replay: Path | None) -> Recorder | None:
    if record is not None and replay is not None:
        raise UsageError("--record and --replay exclude each other; record first, then replay")
    path = record or replay
    if path is None:
        return None
    from concertino.testing import Recorder

    # What is left of the time is shown to the model, and differs from run to run.
    return Recorder(path, "record" if record else "replay", mask=[r'"seconds": [0-9.]+'])


def _recorded(pool: Pool, recording: Recorder) -> Pool:
    """The pool with every model seen through a recording."""
    from concertino.core.model import Model

    for spec in pool.models:
        # In a replay nothing real is asked, and a provider's factory may want a key that CI does not have.
        real = Model if recording.mode == "replay" else spec.factory
        # The lambda's defaults bind now; the loop's variables would be those of the last model.
        pool = pool.replace(
            spec.name, spec.with_(factory=lambda real=real, name=spec.name: recording.model(real(), name))
        )
    return pool
