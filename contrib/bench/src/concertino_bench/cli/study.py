"""`concertino bench study`: an evaluation that is ready to run, and its report, in one command."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
from concertino.cli.options import common_options
from concertino.cli.terminal import say, say_json

from .place_options import place_options
from .run import EvaluationProgress

STUDIES = ("sas-mas",)


@click.command("study")
@click.argument("name", type=click.Choice(STUDIES))
@click.option(
    "--pool",
    "pool_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Pool file; by default the simulated models of concertino-toy.",
)
@click.option("--alone", help="The model of the single agent.  [default: toy/steady]")
@click.option(
    "--count", type=click.IntRange(min=1), default=20, show_default=True, help="Questions of each axis and level."
)
@click.option(
    "--level", "levels", type=click.IntRange(2, 12), multiple=True, help="May be repeated; 2, 4, … 12 by default."
)
@click.option("--samples", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, other questions.")
@click.option("--concurrency", type=click.IntRange(min=1), default=16, show_default=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("sas-mas"),
    show_default=True,
    help="Folder of results and report; what is there is continued.",
)
@place_options
@common_options
def study_command(
    name: str,
    pool_file: Path | None,
    alone: str | None,
    count: int,
    levels: tuple[int, ...],
    samples: int,
    seed: int,
    concurrency: int,
    out: Path,
    on: str,
    env_from: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run a study and draw its figures.

    sas-mas: one agent against many on the five axes of MASBENCH, with an accuracy curve for each axis.

    JSON: {"results", "markdown", "html", "items", "systems": {NAME: {AXIS: accuracy}}}
    """
    import concertino as ct

    from concertino_bench.baselines.study import STUDY_LEVELS, sas_mas
    from concertino_bench.runner.evaluator import evaluate
    from concertino_bench.tasks.installed import installed_graders

    if pool_file is not None:
        pool = ct.Pool.load(pool_file)
        if alone is None:
            raise click.UsageError("--alone: expected the model of the single agent, as PROVIDER/NAME")
    else:
        pool = ct.Pool.installed("toy/*").bind(orchestrator="toy/leader")
    evaluation = sas_mas(
        pool, alone or "toy/steady", count=count, levels=levels or STUDY_LEVELS, samples=samples, seed=seed
    )
    out.mkdir(parents=True, exist_ok=True)
    shown = EvaluationProgress(quiet=as_json)
    work = evaluate(
        evaluation,
        pool,
        out / "results.jsonl",
        graders=installed_graders(),
        concurrency=concurrency,
        on=on,
        env_from=env_from,
        on_progress=shown,
    )
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        shown.end()
        say(f"interrupted; what is done is in {out}, and the same command continues", error=True)
        sys.exit(130)
    shown.end()
    _report(out, as_json)


def _report(out: Path, as_json: bool) -> None:
    import concertino as ct

    from concertino_bench.reports.report import build
    from concertino_bench.reports.results import read_all

    report = build(read_all([out / "results.jsonl"]))
    markdown, page = out / "report.md", out / "report.html"
    markdown.write_text(report.markdown(), "utf-8")
    try:
        page.write_text(report.html(), "utf-8")
    except ct.UsageError as error:
        say(str(error), error=True)
        # Without matplotlib the study still has its Markdown and its figures.
        page = Path()
    curves = report.to_json()["curves"]
    systems: dict[str, dict[str, float]] = {}
    for axis, of in curves.items():
        for name, points in of.items():
            known = [point["value"] for point in points if point["value"] is not None]
            systems.setdefault(name, {})[axis] = round(sum(known) / len(known), 4) if known else 0.0
    if as_json:
        files = {
            "results": str(out / "results.jsonl"),
            "markdown": str(markdown),
            "html": str(page) if page.name else "",
        }
        say_json({**files, "items": len(report.results.items), "systems": systems})
        return
    axes = list(curves)
    width = max(map(len, systems), default=0)
    say(" " * width + "".join(f"{axis:>12}" for axis in axes))
    for name, of in systems.items():
        say(f"{name:<{width}}" + "".join(f"{100 * of[axis]:>10.1f} %" for axis in axes))
    say(f"{markdown}{f', {page}' if page.name else ''}")
