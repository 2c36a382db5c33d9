"""`concertino probe URL`: what a model server really does, as a table, as JSON, or as options for a pool file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from concertino.cli.output import one_line
from concertino.cli.terminal import Painted, say, say_json

if TYPE_CHECKING:
    from .probe import ProbeReport

_COLOURS = {"yes": "green", "no": "yellow", "ignored": "yellow", "refused": "red", "unsure": "cyan"}


@click.command("probe")
@click.argument("url")
@click.option("--model", metavar="NAME", help="The model to ask; by default the first that the server lists.")
@click.option("--server", metavar="PRESET", help="The preset that the options are compared with; by default openai.")
@click.option("--key-env", metavar="NAME", help="The environment variable that holds the key.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time without a byte after which to give up.",
)
@click.option("--toml", "name", metavar="NAME", help="Print only the table of a pool file for openai/NAME.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def probe(
    url: str,
    model: str | None,
    server: str | None,
    key_env: str | None,
    timeout: float,
    name: str | None,
    as_json: bool,
) -> None:
    """Find out what the model server at URL (up to and including /v1) really does.

    Sends fewer than twenty tiny requests, which cost a few hundred tokens. A feature is `ignored` if the server
    answers 200 and nothing of it is seen; `unsure` if it depends on the model.

    JSON: {"base_url", "model", "findings": [{"feature", "verdict", "detail"}], "options"}
    """
    from concertino import ProviderError

    from .probe import Probe

    asked = Probe(base_url=url, model=model, server=server, key_env=key_env, idle_timeout=timeout)
    try:
        probed = asyncio.run(asked.run())
    except ProviderError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        say_json(probed.to_json(), indent=2)
    elif name is not None:
        say(probed.to_toml(name))
    else:
        _show(probed)


def _show(probed: ProbeReport) -> None:
    """The table, and the options below it. Colours are left out where stdout is not a terminal."""
    say(f"{one_line(probed.model)} at {probed.base_url}")
    width = max(len(finding.feature) for finding in probed.findings)
    for finding in probed.findings:
        detail = one_line(finding.detail)
        verdict = Painted(f"{finding.verdict:<8}" if detail else finding.verdict, _COLOURS[finding.verdict])
        say(f"{finding.feature:<{width}}  ", verdict, f"  {detail}" if detail else "")
    say(f"\n{probed.to_toml('NAME')}")
