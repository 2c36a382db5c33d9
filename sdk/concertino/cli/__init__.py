"""The command line `concertino`: a thin reader of arguments and printer of results over the public SDK.

group     the commands, imported when used; those of plugins    failures  errors, exit codes
options   options that several commands share                   output    tables, JSON, safe text
drive     a run or a tail of one, shown live                    run, call, demo, …   one file per command
live, plain, rounds, summary   what is known of a run (`concertino.traces.board`), on a terminal

Invariant: `--help` imports no command and no executor; every command takes `--json` and `--debug`; results go to
stdout, progress and errors to stderr. Exit codes: 0 done, 1 the run, call or check failed, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

from .group import CommandGroup, command_line

__all__ = ["CommandGroup", "command_line", "main"]


def main() -> None:
    """Run the command line on the process's arguments and exit."""
    command_line()
