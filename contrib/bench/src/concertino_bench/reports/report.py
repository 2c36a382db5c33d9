"""A report: its content, written as Markdown, as one HTML page or as JSON data.

The invariants: every text of others is escaped, in the page and in Markdown; the page needs no network and no other
file, its policy forbids what slips through to run or to load, and without its script it can still be read.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from concertino_bench.metrics.bootstrap import LEVEL, RESAMPLES
from concertino_bench.metrics.preferences import Preference

from . import tables
from .content import ReportContent, compute
from .figures import draw
from .results import Results
from .texts import cell, clean

_LONG = frozenset({"why", "more", "value", "trace"})
_NAMES = frozenset({"system", "a", "b", "metric", "member", "task"})
"""Columns of a page that may be wide, and those that hold names."""


class Report(ReportContent):
    """The content of a report, and its three forms."""

    def markdown(self) -> str:
        """The report as Markdown: the tables of the page, without plots."""
        frontiers = [
            (self.metric(x).title, [point.system for point in points if point.frontier])
            for x, points in self.points.items()
        ]
        template = _templates(_for_markdown).get_template("report.md.jinja")
        return template.render(report=self, tables=tables, frontiers=frontiers).rstrip() + "\n"

    def html(self) -> str:
        """The report as one HTML page that needs nothing else.

        Raises:
            UsageError: matplotlib is not installed; says which extra brings it.
        """
        plots = draw(self)
        script, style = (_file(name) for name in ("page.js", "page.css"))
        return (
            _templates(_for_html)
            .get_template("report.html.jinja")
            .render(
                report=self,
                tables=tables,
                plots=plots,
                script=script,
                style=style,
                # The page's policy names this hash, so no script but this one runs, whatever text slipped through.
                digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
                names=_NAMES,
                long=_LONG,
            )
        )


def build(
    results: Results,
    *,
    preference: Preference | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Report:
    """Compute a report.

    Args:
        results: what was run; `read_all` reads it from files.
        preference: what a user would like; by default what the header says under `preference`, if anything.
        level: share of the draws that an interval holds, 0 to 1.
        resamples, seed: of the bootstrap.

    Raises:
        ValueError: there is no item, or an argument is out of range.
    """
    return Report(**vars(compute(results, preference=preference, level=level, resamples=resamples, seed=seed)))


@cache
def _templates(finalize: Callable[[Any], Any]) -> Environment:
    """The templates. Both escape every value: the page by `autoescape`, Markdown by `_for_markdown`."""
    environment = Environment(
        loader=PackageLoader("concertino_bench.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        keep_trailing_newline=True,
    )
    environment.filters["anchor"] = lambda title: title.lower().replace(" ", "-")
    return environment


def _for_html(value: Any) -> Any:
    """A text without control characters; markup of our own as it is."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _for_markdown(value: Any) -> Markup:
    """A text with every sign escaped that Markdown or HTML would read; markup of our own as it is."""
    return value if isinstance(value, Markup) else Markup(cell(value))


def _file(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text("utf-8")
