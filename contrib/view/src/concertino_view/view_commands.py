"""`concertino traces html`: one file of one run. `concertino view`: a folder of runs in a browser."""

from __future__ import annotations

import os
from pathlib import Path

import click
from concertino.cli.options import common_options
from concertino.cli.output import write_json
from concertino.cli.terminal import say
from concertino.core.errors import UsageError
from concertino.core.private_files import open_private
from concertino.traces import TraceStore

_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command("traces html")
@click.argument("trace", default="last")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="By default RUN.html.")
@click.option("--folder", type=_FOLDER, metavar="FOLDER", help="The folder of traces; by default that of the settings.")
@common_options
def html_command(trace: str, output: Path | None, folder: Path | None, as_json: bool) -> None:
    """Write a run as one HTML file that needs nothing else: timeline, calls, messages, errors.

    Secrets are hidden. Read the page before you share it: what is private in plain words, only you can see.

    JSON: {"path", "run_id", "items", "bytes", "notes": [what is missing]}
    """
    from .run_file import RunFile
    from .run_page import page_of

    run = RunFile(TraceStore(folder).find(trace))
    head = run.patch()["head"]
    path = output or Path(f"{run.path.name.split('.')[0]}.html")
    if path.exists() and path.samefile(run.path):
        raise UsageError(f"{path}: it is the trace; the page would take its place. Give another --output")
    try:
        with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w", encoding="utf-8") as file:
            file.writelines(page_of(run))
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    size = path.stat().st_size
    if as_json:
        found = {"path": str(path), "run_id": head["run"], "items": len(run.fold.items), "bytes": size}
        write_json({**found, "notes": head["notes"]})
        return
    say(f"{path}: {len(run.fold.items)} items, {size / 1000:,.0f} kB")
    for note in head["notes"]:
        say(note, error=True)
