"""`concertino traces html`: one file of one run. `concertino view`: a folder of runs in a browser."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path

import click
from concertino.cli.options import common_options
from concertino.cli.output import write_json
from concertino.cli.terminal import say
from concertino.core.errors import UsageError
from concertino.traces import TraceStore

_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


@click.command("traces html")
@click.argument("trace", default="last")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="By default RUN.html."
)
@click.option("--folder", type=_FOLDER, metavar="FOLDER", help="The folder of traces; by default that of the settings.")
@common_options
def html_command(trace: str, output: Path | None, folder: Path | None, as_json: bool) -> None:
    """Write a run as one HTML file that needs nothing else: timeline, calls, messages, errors.

    Secrets are hidden. Read the page before you share it: what is private in plain words, only you can see.

    JSON: {"path", "run_id", "items", "bytes", "notes": [what is missing]}
    """
    from .run_file import RunFile
    from .run_page import write_page_of

    run = RunFile(TraceStore(folder).find(trace))
    head = run.patch()["head"]
    path = output or Path(f"{run.path.name.split('.')[0]}.html")
    if path.exists() and path.samefile(run.path):
        raise UsageError(f"{path}: it is the trace; the page would take its place. Give another --output")
    try:
        write_page_of(run, path)
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


@click.command("view")
@click.argument("folder", type=_FOLDER, required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="By default a free one.")
@click.option(
    "--results",
    multiple=True,
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="Results of `concertino bench run`: what flipped between two systems. Several may be given.",
)
@click.option("--replay", "replays", is_flag=True, help="Let pages replay runs under another strategy.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@common_options
def view_command(
    folder: Path | None, port: int, results: tuple[Path, ...], replays: bool, opens: bool, as_json: bool
) -> None:
    """Look at the runs of a FOLDER in a browser, by default those of the settings, until Ctrl-C.

    The page is for this machine and for whoever has the printed address. It follows runs that are under way, and
    compares two. It changes nothing. With --replay, the page of a run says how it would have ended under another
    strategy or other settings: from its trace alone, so nothing is asked, called or spent.

    JSON: {"address", "folder"}
    """
    from .view_server import ViewServer

    try:
        server = ViewServer(folder, port, replays, results)
    except OSError as error:
        raise UsageError(f"--port {port}: cannot be used: {error.strerror}; leave it out for a free one") from error
    if as_json:
        write_json({"address": server.address, "folder": str(server.pages.store.folder)})
    else:
        say(f"{server.address}\n{server.pages.store.folder}: press Ctrl-C to end")
    if opens:
        webbrowser.open(server.address)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
    try:
        threading.Event().wait()
    finally:
        server.shutdown()
        server.server_close()
