"""`concertino bench report`, `compare` and `pareto`: the results of an evaluation, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from concertino.cli.options import common_options
from concertino.cli.output import write_json
from concertino.cli.terminal import say

if TYPE_CHECKING:
    from concertino_bench.metrics.metric import Value
    from concertino_bench.metrics.pairs import Difference
    from concertino_bench.reports.report import Report

_FILES = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("report")
@click.argument("files", nargs=-1, required=True, type=_FILES)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write one page that needs nothing else.")
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write Markdown; without --html and --markdown it goes to stdout.",
)
@click.option("--lenient", is_flag=True, help="Leave damaged lines out, with a note.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@common_options
def report_command(
    files: tuple[Path, ...], html: Path | None, markdown: Path | None, lenient: bool, seed: int, as_json: bool
) -> None:
    """Make a report of results FILES; several are compared.

    JSON: {"title", "systems": {NAME: {METRIC: {"value", "low", "high"}}}, "comparisons", "pareto", "curves", …}
    """
    for path in (html, markdown):
        if path is not None and path.exists() and any(path.samefile(file) for file in files):
            raise click.UsageError(f"{path} is one of the results files; the report would take its place")
    report = _built(files, lenient, seed)
    for path, write in ((html, report.html), (markdown, report.markdown)):
        if path is not None:
            _write(path, write())
            say(f"{path}", error=True)
    if as_json:
        write_json(report.to_json())
    elif html is None and markdown is None:
        say(report.markdown())


@click.command("compare")
@click.argument("files", nargs=-1, required=True, type=_FILES)
@click.option("--lenient", is_flag=True, help="Leave damaged lines out, with a note.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@common_options
def compare_command(files: tuple[Path, ...], lenient: bool, seed: int, as_json: bool) -> None:
    """Compare the systems of one or several results FILES, pair by pair, on the tasks that both have.

    JSON: [{"a", "b", …}], a row for each pair with differences, intervals and p
    """
    report = _built(files, lenient, seed)
    if as_json:
        write_json([each.to_json() for each in report.comparisons])
        return
    for note in report.results.notes:
        say(note, error=True)
    width = max(map(len, report.systems))
    for name in report.systems:
        say(f"{name:<{width}}  {_shown(report.values[name]['accuracy'])}")
    for each in report.comparisons:
        test = each.mcnemar
        alone = f"{test.only_a} only {each.a}, {test.only_b} only {each.b}, p {test.p:.3g}"
        dropped = each.dropped_a + each.dropped_b
        more = f", {dropped} items without a counterpart" if dropped else ""
        say(f"{each.b} - {each.a}: {_difference(each['accuracy'])}; {alone}; {each.tasks} tasks{more}")


@click.command("pareto")
@click.argument("files", nargs=-1, required=True, type=_FILES)
@click.option("--x", default="usd", show_default=True, help="A metric.")
@click.option("--y", default="accuracy", show_default=True, help="A metric.")
@click.option("--lenient", is_flag=True, help="Leave damaged lines out, with a note.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the bootstrap.")
@common_options
def pareto_command(files: tuple[Path, ...], x: str, y: str, lenient: bool, seed: int, as_json: bool) -> None:
    """List Pareto-optimal systems: those that no other one beats in two metrics at once.

    JSON: [{"system", "x", "y", "frontier", "beaten_by"}]
    """
    from concertino_bench.reports.frontier import pareto
    from concertino_bench.reports.results import read_all

    try:
        points = pareto(read_all(files, lenient=lenient).items, x, y, seed=seed)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        write_json([point.to_json() for point in points])
        return
    width = max((len(point.system) for point in points), default=0)
    for point in points:
        beaten = f"beaten by {', '.join(point.beaten_by)}" if point.beaten_by else ""
        place = "frontier" if point.frontier else beaten or "unknown"
        say(f"{point.system:<{width}}  {x} {_number(point.x)}  {y} {_number(point.y)}  {place}")


def _built(files: tuple[Path, ...], lenient: bool, seed: int) -> Report:
    from concertino_bench.reports.report import build
    from concertino_bench.reports.results import read_all

    results = read_all(files, lenient=lenient)
    if not results.items:
        raise click.ClickException(f"{files[0]} has no items yet; run its evaluation first")
    return build(results, seed=seed)


def _shown(value: Value) -> str:
    """A share as percent, with its interval."""
    if value.value is None:
        return "unknown"
    return f"{100 * value.value:.1f} %{_interval(value.low, value.high, '.1f')}"


def _difference(value: Difference) -> str:
    """A difference of shares in points, with its interval."""
    if value.difference is None:
        return "unknown"
    return f"{100 * value.difference:+.1f} points{_interval(value.low, value.high, '+.1f')}"


def _interval(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f" ({100 * low:{form}} to {100 * high:{form}})"


def _number(value: Value) -> str:
    return "unknown" if value.value is None else f"{value.value:.4g}"


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from error
