"""concertino-view: runs in a browser, from their traces.

    run_file        a trace, read as far as it goes        run_fold       what the page shows of it
    critical_path   what the run was waiting for           item_body      what one item holds
    run_list        the runs of a folder                   run_difference where two runs part
    view_pages      the pages of a folder                  view_server    them for one person on this machine
    view_commands   the commands
    shown_texts     every text that leaves the package     run_page       one run as one file
    training_record rewards, groups, advantages          replayed_end   how a run ends under another strategy
    evaluation_list what flipped between two systems
    static          the scripts and the style sheet of the pages

`write_page` is for programs. Importing this package imports none of the modules; the hook below imports the commands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from concertino import hookimpl

__all__ = ["write_page"]


def write_page(trace: str | Path, output: str | Path) -> Path:
    """Write the run of a trace as one HTML file that needs nothing else. Only its user may read it.

    A damaged trace is shown as far as it goes, and the page says what is missing. Secrets are hidden.

    Args:
        trace: the trace file.
        output: the page; what is there is replaced.

    Returns:
        The page.

    Raises:
        TraceError: the file is no trace, or holds nothing yet.
        OSError: the page cannot be written.
    """
    from .run_file import RunFile
    from .run_page import write_page_of

    return write_page_of(RunFile(Path(trace)), Path(output))


@hookimpl
def concertino_cli() -> list[Any]:
    """`concertino traces html`, and `concertino view`."""
    from .view_commands import html_command, view_command

    return [view_command, html_command]
