"""The options of commands: those that all have, and those of commands that read a settings file."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click
from concertino import UsageError

F = TypeVar("F", bound=Callable[..., Any])
Command = Callable[..., Any]
Option = Callable[[Any], Any]


def common_options(function: F) -> F:
    """Add `--json` (as `as_json`) and `--debug`."""
    debug = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON; progress as JSON Lines on stderr.")
    return as_json(debug(function))


@dataclass(frozen=True)
class TrainingOptions:
    """What the command line of a training says.

    Attributes:
        source: a settings file, or the name of a recipe.
        overrides: `KEY=VALUE`.
        output: folder; that of the settings by default.
        dry_run: only tell what would be done.
        live: a progress bar, or plain lines; None for what suits the terminal.
        as_json: print JSON.
        tflops: speed of one device, for a dry run.
        resume, restart, force: how a training that has begun is handled.
    """

    source: str
    overrides: tuple[str, ...]
    output: Path | None
    dry_run: bool
    live: bool | None
    as_json: bool
    tflops: float | None = None
    resume: bool = False
    restart: bool = False
    force: bool = False


def training_options(*own: Option, estimates: bool = True, resumes: bool = False) -> Callable[[Command], Command]:
    """Give a command the options of a training, as one `TrainingOptions` in front of its own.

    Args:
        own: options of this command alone; each is a further argument.
        estimates: add `--tflops`.
        resumes: add `--resume`, `--restart` and `--force`.
    """
    names = {field.name for field in fields(TrainingOptions)}
    options = [*_SETTINGS, *own, *(_RESUMING if resumes else ()), _DRY_RUN, *([_TFLOPS] if estimates else ()), _VIEW]

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def command(**given: Any) -> Any:
            shared = TrainingOptions(**{name: value for name, value in given.items() if name in names})
            return function(shared, **{name: value for name, value in given.items() if name not in names})

        made: Command = common_options(command)
        # Decorators apply from the last to the first, and --help lists options as they are here.
        for option in reversed(options):
            made = option(made)
        return made

    return decorate


def _tflops(context: click.Context, option: click.Parameter, tflops: float | None) -> float | None:
    """Refuse a speed that nothing reads, or that is no number."""
    if tflops is not None and not context.params["dry_run"]:  # which is eager, so it is there
        raise UsageError(f"--tflops {tflops:g} is for --dry-run; add it, or leave --tflops out")
    if tflops is not None and not math.isfinite(tflops):
        raise UsageError(f"--tflops {tflops:g}: expected a number of TFLOP/s, such as 990")
    return tflops


_SETTINGS: tuple[Option, ...] = (
    click.option(
        "--config",
        "source",
        required=True,
        metavar="FILE|RECIPE",
        help="A YAML file, or a recipe such as gap or gap/toy.",
    ),
    click.option(
        "--output",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="Output folder; that of the settings by default.",
    ),
    click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]..."),
)
_RESUMING: tuple[Option, ...] = (
    click.option("--resume", is_flag=True, help="Resume from the newest checkpoint, if there is one."),
    click.option(
        "--restart", is_flag=True, help="Start over in a folder that holds a training; its results are removed."
    ),
    click.option(
        "--force", is_flag=True, help="Train although the audit fails, or resume although the settings differ."
    ),
)
_DRY_RUN = click.option(
    "--dry-run",
    is_flag=True,
    is_eager=True,
    help="Print the settings, what it would take and the launch command, and do nothing.",
)
_TFLOPS = click.option(
    "--tflops",
    type=click.FloatRange(min=0, min_open=True),
    callback=_tflops,
    metavar="N",
    help="With --dry-run: TFLOP/s of one device, for times on another machine, such as 990 for an H100 in bfloat16.",
)
_VIEW = click.option(
    "--live/--plain", "live", default=None, help="A progress bar, or plain lines; by default a bar on a terminal."
)
