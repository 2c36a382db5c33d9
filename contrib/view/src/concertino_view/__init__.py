"""concertino-view: runs in a browser, from their traces.

    run_file        a trace, read as far as it goes        run_fold       what the page shows of it
    critical_path   what the run was waiting for           item_body      what one item holds
    run_list        the runs of a folder                   run_difference where two runs part
    view_server     the pages of a folder                  view_commands  the commands
    shown_texts     every text that leaves the package     run_page       one run as one file
    static          the scripts and the style sheet of the pages

Importing this package imports none of them; the hook below imports the commands.
"""

from __future__ import annotations

from typing import Any

from concertino import hookimpl

__all__: list[str] = []


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino traces html`, and `concertino view`."""
    from .view_commands import html_command, view_command

    return [view_command, html_command]
