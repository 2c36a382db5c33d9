"""`concertino run`: asks the orchestrator a question and shows the run. Its options; `launch` begins the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from concertino.core.errors import UsageError

from . import complete
from .log import log_option
from .options import PoolChoice, common_options, pool_options, read_stdin, view_options

_BEGUN_WITH = (
    "question",
    "model",
    "strategy",
    "settings",
    "instructions",
    "answer_schema",
    "attach",
    "session",
    "budget",
    "duplicates",
    "eager",
    "shortlist",
    "guards",
    "no_trace",
    "durability",
    "record",
    "replay",
)
"""What `--resume` takes from the trace."""

_EXAMPLES = """\b
Examples:
  concertino run "Who wrote it, and when?" --budget usd=0.5,seconds=60
  concertino run "What is this?" --attach cat.png --attach report.pdf
  concertino run "And tomorrow?" --session ada
  echo "..." | concertino run - --only 'toy/*' --model toy/conductor --json
  concertino run --resume last
"""
_path = click.Path(path_type=Path)


@click.command("run", epilog=_EXAMPLES)
@click.argument("question", required=False)
@click.option(
    "--session", metavar="NAME", help="Continue a conversation, or begin one.", shell_complete=complete.sessions
)
@click.option(
    "--attach",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Add an image, a sound or a file to the question.",
)
@click.option("--instructions", metavar="TEXT", help="What the model is told beside its task: a text, or @FILE.")
@click.option(
    "--answer-schema",
    type=_path,
    metavar="FILE",
    help="Have the answer as JSON that satisfies this JSON Schema.",
    shell_complete=complete.json_files,
)
@click.option(
    "--resume",
    metavar="TRACE",
    help="Resume an interrupted run: a path, an id, or 'last'.",
    shell_complete=complete.traces,
)
@click.option("--approve", multiple=True, metavar="CALL", help="Let a call run that waits for approval, such as 2.1.")
@click.option("--deny", multiple=True, metavar="CALL=REASON", help="Do not let it run; the model reads the reason.")
@pool_options
@click.option(
    "--model",
    metavar="NAME",
    help="The model that leads; by default the role 'orchestrator'.",
    shell_complete=complete.models,
)
@click.option(
    "--strategy",
    metavar="NAME",
    help="The strategy, or a workflow's file; by default parallel calls in rounds, or with nothing to call one reply.",
    shell_complete=complete.strategies,
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of the strategy.",
    shell_complete=complete.strategy_settings,
)
@click.option(
    "--budget",
    default="",
    metavar="LIMITS",
    help="Such as usd=0.5,seconds=60,calls=20.",
    shell_complete=complete.limits,
)
@click.option("--duplicates", type=click.Choice(["run", "reuse", "refuse"]), default="run", help="Repeated calls.")
@click.option("--eager", is_flag=True, help="Start a call when its text is complete, while the model still writes.")
@click.option(
    "--shortlist",
    metavar="RANKING",
    help="List what a ranking puts first: scorer/best, or scorer/best,most=4.",
    shell_complete=complete.rankings,
)
@click.option(
    "--guard",
    "guards",
    multiple=True,
    metavar="NAME",
    help="Have a guard of a plugin check the run: acme/no-secrets.",
    shell_complete=complete.guards,
)
@click.option("--trace", "folder", type=_path, metavar="FOLDER", help="Where to record the run.")
@click.option("--no-trace", is_flag=True, help="Do not record the run.")
@click.option(
    "--durability",
    type=click.Choice(["process", "power"]),
    default="process",
    help="What a finished call survives: the end of the process, or a power cut.",
)
@click.option("--record", type=_path, metavar="FILE", help="Record every call and request.")
@click.option(
    "--replay",
    type=_path,
    metavar="FILE",
    help="Answer from a recording only.",
    shell_complete=complete.recordings,
)
@view_options
@click.option(
    "--stream/--no-stream",
    "stream",
    default=None,
    help="Show text as it is written, or when it is complete; by default as it is written on a terminal.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print the answer alone.")
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
    stream: bool | None,
    quiet: bool,
    events: bool,
    choice: PoolChoice,
    folder: Path | None,
    **options: Any,
) -> None:
    """Ask the orchestrator a question, `-` for one on stdin.

    A call that needs approval is asked about in the terminal. Without one the run is suspended; resume it with
    `--approve` or `--deny`. A session is kept beside its traces; `concertino sessions` lists them.

    Exit code: 0 with an answer, 1 without one, 130 after Ctrl-C.

    \b
    JSON: {"id", "question", "answer", "stop", "detail", "usage", "seconds",
           "critical_path_seconds", "rounds": [{"number", "text", "issues", "observations"}],
           "pool", "trace"}, with --answer-schema also "output"; --events: the records of a
           trace, one a line, with --stream also those of text as it is written.
    """
    if resume is None and (approve or deny):
        raise UsageError("--approve and --deny go with --resume: concertino run --resume TRACE --approve 2.1")
    if resume is None and question is None:
        raise UsageError('there is no question; give one: concertino run "…", or `-` to read it from stdin')
    if resume is not None:
        _refuse_beside_resume()
    # The modules of runs take a third of a second, and a key press for completion imports this one.
    from . import launch
    from .show import Display

    display = Display(live, as_json, events, stream, quiet)
    if resume is not None:
        launch.resume(resume, choice, folder, display, launch.decisions_of(approve, deny))
    elif question is not None:
        asked = read_stdin() if question == "-" else question
        launch.start(asked, display, launch.Order(choice, folder=folder, **options))


def _refuse_beside_resume() -> None:
    """A resumed run keeps the options that it began with."""
    context = click.get_current_context()
    for parameter in context.command.params:
        fixed = parameter.name in _BEGUN_WITH
        # Only what was typed counts: defaults and the environment say nothing about a resumed run.
        if fixed and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE:
            name = parameter.opts[-1] if isinstance(parameter, click.Option) else "the question"
            raise UsageError(f"--resume keeps the options of the run; leave out {name}")
