"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from concertino import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def common_options(function: F) -> F:
    """Add `--json` (as `as_json`) and `--debug`."""
    debug = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON; progress as JSON Lines on stderr.")
    return as_json(debug(function))


def config_options(function: F) -> F:
    """Add `--config`, `KEY=VALUE ...` and `--output`."""
    found: Any = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")(function)
    text = "Output folder; that of the settings by default."
    found = click.option("--output", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help=text)(
        found
    )
    text = "A YAML file, or a recipe such as gap or gap/toy."
    whole: F = click.option("--config", "source", required=True, metavar="FILE|RECIPE", help=text)(found)
    return whole


def dry_run_option(function: F) -> F:
    """Add `--dry-run`."""
    text = "Print the settings, what it would take and the launch command, and do nothing."
    return click.option("--dry-run", is_flag=True, is_eager=True, help=text)(function)


def estimating_options(function: F) -> F:
    """Add `--dry-run` and `--tflops`."""
    text = "With --dry-run: TFLOP/s of one device, for times on another machine, such as 990 for an H100 in bfloat16."
    speed = click.FloatRange(min=0, min_open=True)
    return dry_run_option(click.option("--tflops", type=speed, callback=_tflops, metavar="N", help=text)(function))


def _tflops(context: click.Context, option: click.Parameter, tflops: float | None) -> float | None:
    """Refuse a speed that nothing reads, or that is no number."""
    if tflops is not None and not context.params["dry_run"]:  # which is eager, so it is there
        raise UsageError(f"--tflops {tflops:g} is for --dry-run; add it, or leave --tflops out")
    if tflops is not None and not math.isfinite(tflops):
        raise UsageError(f"--tflops {tflops:g}: expected a number of TFLOP/s, such as 990")
    return tflops


def going_on_options(function: F) -> F:
    """Add `--resume`, `--restart` and `--force`."""
    text = "Train although the audit fails, or resume although the settings differ."
    found = click.option("--force", is_flag=True, help=text)(function)
    text = "Start over in a folder that holds a training; its results are removed."
    found = click.option("--restart", is_flag=True, help=text)(found)
    return click.option("--resume", is_flag=True, help="Resume from the newest checkpoint, if there is one.")(found)


def view_option(function: F) -> F:
    """Add `--live/--plain` (as `live`)."""
    text = "A progress bar, or plain lines; by default a bar on a terminal."
    return click.option("--live/--plain", "live", default=None, help=text)(function)
