"""Errors as the person at the terminal sees them: one message, an exit code, no traceback unless asked for.

    2    wrong usage: `concertino.UsageError` and below, or click's own
    1    the run, the call or the check failed; anything unexpected
    130  Ctrl-C

With `--json` among the arguments the message is JSON, on stderr too: `{"error": {"type": …, "message": …}}`.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence

import click

from concertino.core.errors import ConcertinoError, UsageError

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130


class Interrupted(Exception):
    """The person pressed Ctrl-C, and running calls were cancelled. The message says how to resume."""


class Failed(Exception):
    """The command did its work, and the outcome is bad. The message, if there is one, is shown as an error."""


def report(error: Exception, arguments: Sequence[str]) -> int:
    """Print an error to stderr.

    Args:
        arguments: of the command line; `--json` and `--debug` are looked for in them.

    Returns:
        The exit code.
    """
    given = _options(arguments)
    if isinstance(error, click.Abort):
        return INTERRUPTED
    if "--debug" in given and not isinstance(error, (click.ClickException, Failed, Interrupted)):
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    if "--json" in given:
        if message := _message(error):
            data = {"error": {"type": _type(error), "message": message}}
            # As bytes: messages quote models, and may hold half a character that no encoding takes.
            click.echo(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"), err=True)
    elif isinstance(error, click.ClickException):
        error.show()
    elif message := _message(error):
        click.echo(message if isinstance(error, Interrupted) else f"Error: {message}", err=True)
    return exit_code(error)


def exit_code(error: Exception) -> int:
    """The exit code of an error."""
    if isinstance(error, click.ClickException):
        return error.exit_code
    if isinstance(error, Interrupted):
        return INTERRUPTED
    return WRONG_USAGE if isinstance(error, UsageError) else FAILED


def _options(arguments: Sequence[str]) -> list[str]:
    """What stands before a `--`; what follows is not for us."""
    listed = list(arguments)
    return listed[: listed.index("--")] if "--" in listed else listed


def _message(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, (ConcertinoError, Failed, Interrupted)):
        return str(error)
    return (
        f"unexpected {type(error).__name__}: {error}. This is a fault of concertino or of a plugin; "
        "--debug shows the traceback"
    )


def _type(error: Exception) -> str:
    return "UsageError" if isinstance(error, click.UsageError) else type(error).__name__
