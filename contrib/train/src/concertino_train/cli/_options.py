"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def common_options(function: F) -> F:
    """Add `--json` (as `as_json`) and `--debug`."""
    debug = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON; progress as JSON Lines on stderr.")
    return as_json(debug(function))


def config_options(function: F) -> F:
    """Add `--config`, `KEY=VALUE ...` and `--output`."""
    found: Any = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")(function)
    text = "Folder of everything that comes of it; that of the settings by default."
    found = click.option("--output", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", help=text)(
        found
    )
    text = "A YAML file, or a recipe such as gap or gap/toy."
    return click.option("--config", "source", required=True, metavar="FILE|RECIPE", help=text)(found)  # type: ignore[no-any-return]


def dry_run_option(function: F) -> F:
    """Add `--dry-run`."""
    text = "Print the settings, what it would take and the launch command, and do nothing."
    return click.option("--dry-run", is_flag=True, help=text)(function)


def going_on_options(function: F) -> F:
    """Add `--resume` and `--force`."""
    text = "Begin anew in a folder that is in use, go on with other settings, train although the audit fails."
    found = click.option("--force", is_flag=True, help=text)(function)
    return click.option("--resume", is_flag=True, help="Go on from the newest checkpoint, where there is one.")(found)


def view_option(function: F) -> F:
    """Add `--live/--plain` (as `live`)."""
    text = "A progress bar, or plain lines; by default a bar on a terminal."
    return click.option("--live/--plain", "live", default=None, help=text)(function)
