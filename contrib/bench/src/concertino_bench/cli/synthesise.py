"""`concertino bench synthesise`: a domain and its tasks, into a folder that is continued where it was left."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from concertino.cli.options import common_options
from concertino.cli.output import write_json
from concertino.cli.terminal import say

from concertino_bench.toolscale.settings import SynthesisProgress, SynthesisReport, SynthesisSettings

from .progress import ProgressLine

if TYPE_CHECKING:
    from concertino import Pool

F = TypeVar("F", bound=Callable[..., Any])
_DEFAULT = SynthesisSettings("-")
_EXAMPLES = """\b
Examples:
  concertino bench synthesise --domain "a town library" --out library --pool pool.toml --dry-run
  concertino bench synthesise --domain "a town library" --out library --pool pool.toml --budget usd=2
"""


def _count(name: str, text: str, least: int = 1) -> Callable[[F], F]:
    return click.option(
        f"--{name}", type=click.IntRange(min=least), default=getattr(_DEFAULT, name), show_default=True, help=text
    )


@click.command("synthesise", epilog=_EXAMPLES)
@click.option("--domain", required=True, help="What the service is, in a few words.")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder.")
@click.option(
    "--pool",
    "pool_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A pool file that binds writer and solver; by default what is installed.",
)
@click.option("--writer", metavar="MODEL", help="The model that writes, where no role says so.")
@click.option("--solver", metavar="MODEL", help="The model that tries the tasks; by default the writer.")
@_count("subjects", "How many subjects the entries are about.")
@_count("entries", "Entries of each table for each subject.")
@_count("tools", "About how many tools.")
@_count("intents", "How many intents; each becomes a task.")
@_count("evolve", "How often each task is made harder.", 0)
@_count("attempts", "Attempts of the solver at a task; 0 leaves this filter out.", 0)
@_count("repairs", "How often a model is told what is wrong with a reply.", 0)
@click.option("--no-review", is_flag=True, help="Do not have the entries looked through for contradictions.")
@click.option("--budget", default="", metavar="LIMITS", help="Such as usd=2,seconds=3600.")
@click.option("--concurrency", type=click.IntRange(min=1), default=4, show_default=True, help="Tasks at once.")
@click.option("--dry-run", is_flag=True, help="Say what would be asked, and of whom; ask nothing.")
@common_options
def synthesise_command(
    out: Path,
    pool_file: Path | None,
    writer: str | None,
    solver: str | None,
    no_review: bool,
    budget: str,
    concurrency: int,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Synthesise a domain with a database, tools and tasks, and filter the tasks.

    Everything is kept in the folder the moment it comes: the same command continues where it was left. The code of the
    tools runs in the sandbox `code/python` alone. Ends with status 1 if no task is left.

    \b
    JSON: {"folder", "tables", "entries", "tools", "intents", "tasks": {level: count}, "reasons": {reason: count},
           "rejected": [{"id", "reason", "detail"}], "asked", "known", "usage", "seconds"}
    JSON of --dry-run: {"folder", "settings", "writer", "solver", "sandbox", "finished": [names],
                       "requests": {step: most}}
    """
    settings = SynthesisSettings(review=not no_review, **given)
    pool = _pool(pool_file, writer, solver)
    if dry_run:
        plan = _plan(settings, out, pool)
        if as_json:
            write_json(plan)
        else:
            say(_plan_text(plan))
        return
    report = _run(pool, settings, out, budget, concurrency, quiet=as_json)
    if as_json:
        write_json(report.to_json())
    else:
        _show(report)
    # A script that continues with the tasks has to see that there are none.
    if not report.tasks:
        sys.exit(1)


def _pool(file: Path | None, writer: str | None, solver: str | None) -> Pool:
    """The pool, with writer and solver bound and the sandbox in it.

    Raises:
        PoolError: a model or the sandbox is missing.
    """
    from concertino import Pool

    from concertino_bench.toolscale.pipeline import SANDBOX

    pool = Pool.load(file) if file is not None else Pool.installed()
    if SANDBOX not in pool:
        pool = pool.adding(Pool.installed(SANDBOX)[SANDBOX])
    roles = {"writer": writer, "solver": solver or writer}
    pool = pool.bind(**{role: pool.model(name).name for role, name in roles.items() if name})
    for role in roles:
        pool.model(role)
    return pool


def _plan(settings: SynthesisSettings, out: Path, pool: Pool) -> dict[str, Any]:
    """What would be asked at most, with every repair and every attempt."""
    from concertino_bench.toolscale.pipeline import SANDBOX

    tries, tasks = 1 + settings.repairs, settings.intents * (1 + settings.evolve)
    # The prompt asks for two to six tables, so this is the most.
    batches = settings.subjects * 6
    return {
        "folder": str(out),
        "settings": asdict(settings),
        "writer": pool.model("writer").name,
        "solver": pool.model("solver").name,
        "sandbox": pool[SANDBOX].description,
        "finished": sorted(str(file.relative_to(out).with_suffix("")) for file in out.rglob("*.json")),
        "requests": {
            "schema": tries,
            "subjects": tries,
            "entries": batches * tries * (2 if settings.review else 1),
            "tools": tries,
            "intents": tries,
            "tasks": settings.intents * tries,
            "evolved": settings.intents * settings.evolve * tries,
            "judged": tasks * (1 + settings.attempts),
        },
    }


def _plan_text(plan: dict[str, Any]) -> str:
    lines = [f"{plan['folder']}: {len(plan['finished'])} artefacts are there"]
    lines += [f"{role}: {plan[role]}" for role in ("writer", "solver", "sandbox")]
    lines += [f"{step:<9} at most {count} requests" for step, count in plan["requests"].items()]
    return "\n".join(lines)


def _run(
    pool: Pool, settings: SynthesisSettings, out: Path, budget: str, concurrency: int, *, quiet: bool
) -> SynthesisReport:
    from concertino import Budget, CallFailed

    from concertino_bench.toolscale.asking import StepFailed
    from concertino_bench.toolscale.pipeline import synthesise

    line = ProgressLine(quiet=quiet)

    def show(progress: SynthesisProgress) -> None:
        known = f", {progress.known} known" if progress.known else ""
        line.show(f"{progress.step}: {progress.asked} requests{known}, {progress.rejected} rejected", now=True)

    try:
        limits = Budget.parse(budget) if budget else None
        work = synthesise(pool, settings, out, budget=limits, concurrency=concurrency, on_progress=show)
        report = asyncio.run(work)
    except (StepFailed, CallFailed, ValueError) as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        line.end()
        say(f"interrupted; what came is kept in {out}: the same command continues", error=True)
        sys.exit(130)
    line.end()
    return report


def _show(report: SynthesisReport) -> None:
    say(
        f"{report.folder}: {report.tables} tables, {report.entries} entries, {report.tools} tools, "
        f"{report.intents} intents"
    )
    kept = ", ".join(f"{count} of level {level}" for level, count in sorted(report.tasks.items()))
    say(f"{sum(report.tasks.values())} tasks: {kept or 'none'}")
    for reason, count in sorted(report.reasons.items()):
        say(f"rejected: {count} {reason}")
    say(f"{report.asked} requests, {report.known} artefacts were known, {report.seconds:.1f} s")
