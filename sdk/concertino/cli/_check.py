"""`concertino check`: the conformance report of a plugin's package."""

from __future__ import annotations

import click

from ._failures import Failed
from ._options import common_options
from ._output import write_json


@click.command("check")
@click.argument("package")
@common_options
def check(package: str, as_json: bool) -> None:
    """Check an installed plugin against the conformance kit, by its import name or distribution.

    Exit code: 0 if it passes, else 1. JSON: the report.
    """
    from concertino.testing import check_package

    report = check_package(package)
    if as_json:
        write_json(report.to_json())
    else:
        click.echo(report.render())
    if not report.ok:
        raise Failed("" if as_json else f"{package} does not conform")
