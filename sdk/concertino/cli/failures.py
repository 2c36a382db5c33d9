"""Errors as the person at the terminal sees them: one message, an exit code, no traceback unless asked for.

    2    wrong usage: `concertino.UsageError` and below, or click's own
    1    the run, the call or the check failed; anything unexpected
    130  Ctrl-C

With `--json` among the arguments the message is JSON, on stderr too: `{"error": {"type": …, "message": …}}`.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Sequence

import click

from concertino.core.errors import ConcertinoError, UsageError

from . import is_ctrl_c
from .terminal import say, say_json

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130


class Interrupted(Exception):
    """The person pressed Ctrl-C, and running calls were cancelled. The message says how to resume."""


class OutputLost(ConcertinoError):
    """A result could not be written to stdout: a full disk, a device that takes nothing more."""


class Failed(Exception):
    """The command did its work, and the outcome is bad. The message, if there is one, is shown as an error."""


def report(error: Exception, arguments: Sequence[str]) -> int:
    """Print an error to stderr.

    Args:
        arguments: of the command line; `--json` and `--debug` are looked for in them.

    Returns:
        The exit code.
    """
    from concertino.core.known_secrets import without_secrets  # `--help` needs no secrets

    given = _options(arguments)
    if isinstance(error, click.Abort) or is_ctrl_c(error):
        error = Interrupted("cancelled")
    if "--debug" in given and not isinstance(error, (click.ClickException, Failed, Interrupted)):
        say(without_secrets("".join(traceback.format_exception(error))), error=True, nl=False)
    message = without_secrets(_message(error))
    if not message:
        return exit_code(error)
    if "--json" not in given and isinstance(error, click.UsageError) and _is_help(error):
        say(error.format_message(), error=True)
        return exit_code(error)
    if "--json" in given:
        say_json({"error": {"type": _type(error), "message": message}}, error=True)
    else:
        say(message if isinstance(error, Interrupted) else f"Error: {message}", error=True)
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
    if isinstance(error, click.UsageError):
        return _usage(error)
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, (ConcertinoError, Failed, Interrupted)) or _of_provider(error):
        return str(error)
    if isinstance(error, OSError) and error.errno is not None:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{os.strerror(error.errno)}; --debug shows what was being done"
    return (
        f"unexpected {type(error).__name__}: {error}. This is a fault of concertino or of a plugin; "
        "--debug shows the traceback"
    )


def _of_provider(error: Exception) -> bool:
    """Whether a remote failure is told in a plugin's words. No such error is there before its class was imported."""
    module = sys.modules.get("concertino.core.provider_error")
    return module is not None and isinstance(error, module.ProviderError)


def _usage(error: click.UsageError) -> str:
    """What click found wrong with the arguments, on one line, with the command whose help says what it takes."""
    if _is_help(error):
        return f"which command? see {error.ctx.command_path if error.ctx else 'concertino'} --help"
    text = " ".join(error.format_message().split()).rstrip(".")
    text = re.sub(r"\.? \(?Did you mean (.*?)\)?$", r"; did you mean \1", text[:1].lower() + text[1:])
    # Our own messages say the next step.
    return f"{text}; see {error.ctx.command_path} --help" if error.ctx and "; " not in text else text


def _is_help(error: click.UsageError) -> bool:
    """Whether it stands for the help that a group shows when no command is given."""
    return error.format_message().startswith("Usage: ")


def _type(error: Exception) -> str:
    if isinstance(error, click.UsageError):
        return "UsageError"
    # What a command wrapped for click is called as it was.
    if isinstance(error, click.ClickException):
        return "Failed" if error.__cause__ is None else type(error.__cause__).__name__
    return type(error).__name__
