"""The command line `concertino`: a thin reader of arguments and printer of results over the public SDK.

process   streams and arguments, before anything else           failures  errors, exit codes
group     the commands, imported when used; those of plugins    options   options that several commands share
output    tables, fields, JSON                                  log       the log of a command
terminal  the one door to the terminal: nothing is written elsewhere
launch    from options to a run: question, recordings           show, drive   a run, shown while it goes on
live, plain, written, rounds, summary    what is known of a run (`concertino.traces.board`), on a terminal
leaders, doctor_leaders, surroundings    which models can lead, and what there is
complete, seen, command_tree, shells     completion of names, without any plugin
run, call, demo, …                       one file per command

Invariant: `--help` imports no command and no executor; every command takes `--json` and `--debug`; results go to
stdout, progress and errors to stderr. Exit codes: 0 done, 1 the run, call or check failed, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .group import CommandGroup as CommandGroup
    from .group import command_line as command_line

__all__ = ["CommandGroup", "command_line", "main"]


def main() -> None:
    """Run the command line on the process's arguments and exit."""
    # Ctrl-C may come before anything has been imported that could handle it.
    try:
        from .process import run_process

        code = run_process(sys.argv[1:])
    except (KeyboardInterrupt, RuntimeError) as error:
        if not is_ctrl_c(error):
            raise
        sys.stderr.write("cancelled\n")
        code = 130
    sys.exit(code)


def is_ctrl_c(error: BaseException) -> bool:
    """Whether an error is Ctrl-C, or was raised because of it.

    Python 3.11 raises a `RuntimeError` from whatever `__set_name__` raised, so Ctrl-C while a class is made is one.
    """
    return isinstance(error, KeyboardInterrupt) or (error.__cause__ is not None and is_ctrl_c(error.__cause__))


def __getattr__(name: str) -> Any:
    # At first use: importing click takes most of the time in which Ctrl-C would end in a traceback.
    if name in ("CommandGroup", "command_line"):
        from . import group

        return getattr(group, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
