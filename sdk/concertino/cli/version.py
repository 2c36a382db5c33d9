"""`concertino version`: what to write into a bug report."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

import click

from .options import common_options
from .output import write_json
from .terminal import say


@click.command("version")
@common_options
def version(as_json: bool) -> None:
    """Print the versions of concertino and Python.

    JSON: {"concertino", "python", "platform"}, all texts.
    """
    data = {
        "concertino": version_of("concertino"),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    if as_json:
        write_json(data)
    else:
        say(f"concertino {data['concertino']} on Python {data['python']}, {data['platform']}")
