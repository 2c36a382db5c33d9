"""`concertino serve SETTINGS`."""

from __future__ import annotations

from pathlib import Path

import click
from concertino.cli.options import common_options
from concertino.cli.output import write_json
from concertino.cli.terminal import say
from concertino.core.errors import UsageError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command("serve")
@click.argument("settings", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen; by default this machine alone.")
@click.option("--port", type=click.IntRange(0, 65535), default=8899, help="By default 8899; 0 for a free one.")
@common_options
def serve_command(settings: Path, host: str, port: int, as_json: bool) -> None:
    """Serve pools, the presets of a SETTINGS file, to clients of the OpenAI API, until Ctrl-C.

    Elsewhere than on this machine it listens only if the file names keys. Every run has a trace. A stop waits for the
    runs; a run that has not ended then continues at the next start. A change of the file, or of a pool file that it
    names, takes effect for the runs that begin then, and so does SIGHUP.

    JSON: {"address", "models", "keys"}
    """
    from concertino.traces.sealing import new_seal

    from .gate import LOOPBACK
    from .http_server import listen, server_of
    from .serve_settings import read_serve_settings
    from .web_app import application_of

    read = read_serve_settings(settings)
    if host not in _LOOPBACK and not read.keys:
        raise UsageError(
            f"--host {host}: others could use the models of {settings} and spend your money; add keys to the file: "
            '[keys.ada] with env = "ADA_KEY"'
        )
    new_seal({})  # a wrong key is better told now than to the first client
    app = application_of(read, (*LOOPBACK, host), reload_by_signal=True)
    app.serving.hub.take_folder()
    listening = listen(host, port)
    found = listening.getsockname()[1]
    address = f"http://{f'[{host}]' if ':' in host else host}:{found}"
    if as_json:
        write_json({"address": address, "models": list(read.presets), "keys": [key.name for key in read.keys]})
    else:
        say(f"{address}/v1 serves {', '.join(read.presets)}; press Ctrl-C to end")
    server_of(app.gate, read.limits.drain_seconds).run(sockets=[listening])
