"""The log of a command, on stderr: warnings alone, or more where `--log-level` or CONCERTINO_LOG asks for it.

Invariant: when the command is over, the loggers are as they were.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import click

from concertino.core.errors import UsageError

from .terminal import say

VARIABLE = "CONCERTINO_LOG"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_FORMAT = "%(asctime)s %(levelname)-7s %(name)s %(message)s"


class _Stderr(logging.Handler):
    """Writes to what stderr is at the time, which a test or a live view may have changed."""

    def emit(self, record: logging.LogRecord) -> None:
        # Further lines are set in, so that none of them looks like a record of its own.
        say(self.format(record).replace("\n", "\n    "), error=True)


def log_to_stderr(context: click.Context, level: str | None) -> None:
    """Log at a level until the command is over; without one, warnings as plain lines.

    Raises:
        UsageError: there is no such level.
    """
    if level is not None and level.upper() not in LEVELS:
        raise UsageError(f"{VARIABLE}={level}: expected one of {', '.join(LEVELS)}")
    logger, handler = logging.getLogger("concertino"), _Stderr(logging.WARNING)
    before, others = logger.level, [each for each in logger.handlers if isinstance(each, _Stderr)]
    if level is not None:
        handler.setLevel(level.upper())
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.setLevel(level.upper())
    # What the environment asked for gives way to what was typed.
    for other in others:
        logger.removeHandler(other)
    logger.addHandler(handler)

    def undo() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)

    context.find_root().call_on_close(undo)


def level_of_environment() -> str | None:
    """What CONCERTINO_LOG asks for."""
    return os.environ.get(VARIABLE) or None


def replaces_view() -> bool:
    """Whether the log tells a run already, so that plain lines would tell it twice."""
    return logging.getLogger("concertino").level in (logging.DEBUG, logging.INFO)


def log_option(function: Any) -> Any:
    """Add `--log-level` to a command."""

    def chosen(context: click.Context, _: click.Parameter, level: str | None) -> None:
        if level is not None:
            log_to_stderr(context, level)

    text = f"Log to stderr, in place of the view. {VARIABLE} does so for every command."
    kind = click.Choice(LEVELS, case_sensitive=False)
    return click.option("--log-level", type=kind, callback=chosen, expose_value=False, help=text)(function)
