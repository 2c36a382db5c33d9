"""`concertino check`: the conformance report of a plugin's package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import complete
from .failures import Failed, Interrupted
from .options import common_options
from .output import write_json
from .status_line import StatusLine
from .terminal import say

if TYPE_CHECKING:
    from concertino.testing import CheckRow, ConformanceReport


@click.command("check")
@click.argument("package", shell_complete=complete.providers)
@click.option("--only", default="", metavar="NAME", help="Check only this member or strategy.")
@click.option("--strict", is_flag=True, help="Fail as well where an author gave too little for a check.")
@common_options
def check(package: str, only: str, strict: bool, as_json: bool) -> None:
    """Check an installed plugin against the conformance kit, by its import name or distribution.

    Members run with the examples of `concertino_examples`, which is in the module of the plugin's hooks. Strategies are
    driven with replies and observations that are made up. A line `give` says what an author could add, a line `skip`
    why a requirement does not apply.

    Exit code: 0 if it passes, else 1.

    JSON: {"package", "ok", "complete", "counts", "rows": [{"check", "subject", "outcome", "detail", "requirement"}]};
    outcomes: ok, failed, missing, skipped.
    """
    from concertino.testing import ConformanceReport, check_package

    line = StatusLine()
    rows: list[CheckRow] = []

    def tell(row: CheckRow) -> None:
        rows.append(row)
        line.show(f"{row.subject}: {row.requirement}")

    try:
        report = check_package(package, only=only, tell=tell)
    except KeyboardInterrupt:
        line.end()
        say(ConformanceReport(package, tuple(rows)).render())
        raise Interrupted("cancelled; what is above was checked") from None
    finally:
        line.end()
    if as_json:
        write_json(report.to_json())
    else:
        say(report.render())
    if wrong := _verdict(report, strict):
        raise Failed("" if as_json else f"{package} {wrong}")


def _verdict(report: ConformanceReport, strict: bool) -> str:
    """What is wrong, in words; empty if nothing is."""
    if not report.ok:
        return "does not conform"
    return "leaves requirements unchecked; see the lines `give`" if strict and not report.complete else ""
