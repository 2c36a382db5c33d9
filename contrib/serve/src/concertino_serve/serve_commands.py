"""`concertino serve SETTINGS`."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from concertino.cli.options import common_options
from concertino.cli.output import write_json
from concertino.cli.terminal import say
from concertino.core.errors import UsageError

if TYPE_CHECKING:
    import socket

    from .serve_settings import ServeSettings

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command("serve")
@click.argument("settings", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen; by default this machine alone.")
@click.option("--port", type=click.IntRange(0, 65535), default=8899, help="By default 8899; 0 for a free one.")
@click.option("--stdio", is_flag=True, help="Be an MCP server on stdin and stdout, for the client that starts this.")
@click.option("--a2a", is_flag=True, help="Be an agent for clients of A2A too, at /a2a.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, metavar="N", help="Processes; by default 1.")
@click.option("--worker", hidden=True, help="Be a worker, `NAME:SOCKET`, of the process that starts this.")
@common_options
def serve_command(
    settings: Path, host: str, port: int, stdio: bool, a2a: bool, workers: int, worker: str | None, as_json: bool
) -> None:
    """Serve pools, the presets of a SETTINGS file, to clients of the OpenAI API, until Ctrl-C.

    Elsewhere than on this machine it listens only if the file names keys. Every run has a trace. A stop waits for the
    runs; a run that has not ended then continues at the next start. A change of the file, or of a pool file that it
    names, takes effect for the runs that begin then, and so does SIGHUP.

    Several workers share the address, the runs and the limits of keys. What one of them has begun the others read,
    cancel and continue, also if it dies.

    With [mcp] in the file it is an MCP server too, at /mcp. With --stdio it is one on stdin and stdout alone.

    JSON: {"address", "models", "keys"}
    """
    from concertino.traces.sealing import new_seal

    from .http_server import listen
    from .serve_settings import read_serve_settings

    read = dataclasses.replace(read_serve_settings(settings), a2a=a2a)
    if worker is not None:
        _be_worker(read, host, worker)
        return
    if host not in _LOOPBACK and not read.keys:
        raise UsageError(
            f"--host {host}: others could use the models of {settings} and spend your money; add keys to the file: "
            '[keys.ada] with env = "ADA_KEY"'
        )
    new_seal({})  # a wrong key is better told now than to the first client
    if stdio:
        if workers > 1:
            raise UsageError("--stdio has one client, so it takes no --workers")
        _serve_stdio(read)
        return
    serve = _one_process(read, host) if workers == 1 else _group(read, settings, host, workers)
    listening = listen(host, port)
    found = listening.getsockname()[1]
    address = f"http://{f'[{host}]' if ':' in host else host}:{found}"
    if as_json:
        write_json({"address": address, "models": list(read.presets), "keys": [key.name for key in read.keys]})
    else:
        say(f"{address}/v1 serves {', '.join(read.presets)}; press Ctrl-C to end")
    serve(listening)


def _one_process(read: ServeSettings, host: str) -> Callable[[socket.socket], None]:
    """What serves at a socket. It has the folder of the runs already."""
    from .gate import LOOPBACK
    from .http_server import server_of
    from .web_app import application_of

    app = application_of(read, (*LOOPBACK, host), reload_by_signal=True)
    app.serving.hub.take_folder()
    server = server_of(app.gate, read.limits.drain_seconds)
    return lambda listening: server.run(sockets=[listening])


def _group(read: ServeSettings, settings: Path, host: str, workers: int) -> Callable[[socket.socket], None]:
    """What has several workers serve at a socket. It has the folder of the runs already."""
    from .web_app import serving_of
    from .worker_group import WorkerGroup, new_ledger

    hub = serving_of(read).hub
    folder = hub.take_folder()
    with contextlib.closing(new_ledger(folder.path)) as ledger:
        serving_of(read, ledger).hub.look_through()
    command = [sys.executable, "-m", "concertino", "serve", str(settings), "--host", host, *["--a2a"] * read.a2a]
    return lambda listening: WorkerGroup(command, workers, listening, folder, read.limits.drain_seconds).run()


def _be_worker(read: ServeSettings, host: str, worker: str) -> None:
    import socket

    from concertino import Runs

    from .gate import LOOPBACK
    from .http_server import server_of
    from .run_ledger import RunLedger
    from .web_app import application_of
    from .worker_group import end_with_stdin, ledger_file

    name, _, descriptor = worker.partition(":")
    ledger = RunLedger(ledger_file(Runs(read.traces).store.folder), name)
    app = application_of(read, (*LOOPBACK, host), reload_by_signal=True, ledger=ledger)
    end_with_stdin()
    server_of(app.gate, read.limits.drain_seconds).run(sockets=[socket.socket(fileno=int(descriptor))])


def _serve_stdio(read: ServeSettings) -> None:
    import asyncio

    from .web_app import require_mcp

    require_mcp()
    from .mcp_stdio import serve_stdio

    asyncio.run(serve_stdio(read))
