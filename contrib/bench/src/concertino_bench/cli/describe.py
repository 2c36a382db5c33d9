"""`concertino pool describe`: descriptions of models from how they do on tasks, counted while they are made."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from concertino.cli.options import PoolChoice, common_options, pool_options, warn_about_broken_plugins
from concertino.cli.output import clean, one_line, write_json, write_table
from concertino.cli.terminal import say

from .place_options import place_options
from .progress import ProgressLine

if TYPE_CHECKING:
    from concertino import ModelSpec, Pool

    from concertino_bench.model_cards import Described, Description
    from concertino_bench.model_cards.description import DescriptionProgress

_EXAMPLES = """\b
Examples:
  concertino pool describe --budget usd=0.5 --save pool.toml
  concertino pool describe --models 'vllm/*' --writer sage --tasks mine.jsonl
  concertino pool describe --models 'local/*' --on local:2
"""
_PATH = click.Path(path_type=Path)


@click.command("pool describe", epilog=_EXAMPLES)
@pool_options
@click.option("--models", multiple=True, metavar="PATTERN", help="Describe these models only; by default all.")
@click.option("--tasks", "task_file", type=_PATH, metavar="FILE", help="Tasks of your own (JSONL).")
@click.option("--sample", type=click.IntRange(min=1), metavar="NUMBER", help="So many of the tasks, kinds even.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws another sample.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="How often each is asked.")
@click.option("--writer", metavar="NAME", help="The model that writes; by default the role 'writer', if it is bound.")
@click.option("--no-writer", is_flag=True, help="The figures alone, in words.")
@click.option(
    "--cache",
    type=_PATH,
    metavar="FOLDER",
    help="Where answers and texts are kept; by default .concertino/descriptions.",
)
@click.option("--refresh", is_flag=True, help="Ask again what is known.")
@click.option("--budget", default="", metavar="LIMITS", help="Such as usd=0.5,seconds=600.")
@click.option(
    "--concurrency", type=click.IntRange(min=1), default=8, show_default=True, help="Requests to one model at once."
)
@click.option("--trace", type=_PATH, metavar="FOLDER", help="Where to record the requests.")
@place_options
@click.option("--save", type=_PATH, metavar="FILE", help="A pool file for the described pool.")
@common_options
def describe_command(
    choice: PoolChoice,
    writer: str | None,
    no_writer: bool,
    save: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Describe the models of a pool from how they do on tasks: figures, and what a writer model makes of them.

    Every answer is kept the moment it comes, so nothing is paid for twice: not after an interruption, and not when a
    model is added. Exit code: 0 if every model is described, 1 if not, 130 after Ctrl-C.

    \b
    JSON: {"pool", "descriptions": [{"model", "text", "written_by", "at", "evidence",
           "notes", "profile"}], "unfinished": {model: why}, "asked", "known",
           "problems", "usage", "saved"}
    """
    if writer and no_writer:
        raise click.UsageError("--writer and --no-writer exclude each other")
    pool = choice.open()
    if save is not None:
        _refuse_unsavable(pool, save)
    author = None if no_writer else _writer(writer, pool, choice)
    if not as_json:
        warn_about_broken_plugins()
    described = _run(pool, author, as_json, **options)
    if save is not None:
        described.pool.save(save)
    if as_json:
        write_json({**described.to_json(), "saved": str(save) if save else None})
    else:
        _show(described, save)
    if described.unfinished:
        raise click.ClickException("" if as_json else _unfinished(described))


def _refuse_unsavable(pool: Pool, file: Path) -> None:
    """Find out before anything is asked whether the pool can be written to such a file."""
    from concertino import PoolError

    # Saving is tried elsewhere: the file itself must not change before the models are described.
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / f"pool{file.suffix}"
        try:
            pool.save(trial)
        except PoolError as error:
            raise PoolError(str(error).replace(str(trial), str(file))) from error


def _writer(name: str | None, pool: Pool, choice: PoolChoice) -> str | ModelSpec | None:
    """The writer, also where the patterns of the choice leave it out of the pool."""
    if name is None:
        return "writer"
    from concertino_bench.model_cards.describing import find_writer

    # Patterns choose what is described; the one who writes about it may well be left out by them.
    inside = name in pool.roles or any(name in (spec.name, spec.short_name) for spec in pool.models)
    return name if inside else find_writer(replace(choice, only=(), without=()).open(), name)


def _run(pool: Pool, writer: str | ModelSpec | None, as_json: bool, **options: Any) -> Described:
    from concertino import Budget

    from concertino_bench.model_cards.describing import DEFAULT_CACHE, describe

    line = ProgressLine(quiet=as_json)
    folder, budget = options.pop("cache") or DEFAULT_CACHE, Budget.parse(options.pop("budget"))
    tasks = options.pop("task_file")

    def show(progress: DescriptionProgress) -> None:
        line.show(_progress(progress), now=progress.done == progress.total)

    async def work() -> Described | None:
        try:
            return await describe(
                pool,
                tasks,
                writer=writer,
                cache=folder,
                budget=budget,
                on_progress=show,
                **options,
            )
        except asyncio.CancelledError:
            return None

    try:
        described = asyncio.run(work())
    finally:
        line.end()
    if described is None:
        again = ", without --refresh" if options["refresh"] else ""
        say(f"cancelled; what was answered is kept in {folder}: the same command continues{again}", error=True)
        sys.exit(130)
    return described


def _progress(progress: DescriptionProgress) -> str:
    known = f", {progress.known} of them known" if progress.known else ""
    left = progress.seconds_left
    time_left = f", about {left:.0f} s left" if left and left >= 1 else ""
    return f"{progress.done} of {progress.total} answers{known}{time_left}"


# -- the result --------------------------------------------------------------------------------------------------------


def _show(described: Described, saved: Path | None) -> None:
    for problem in described.problems:
        say(f"damaged: {clean(problem)}", error=True)
    if described.descriptions:
        titles = ("MODEL", "CORRECT", "95 %", "TASKS", "TOKENS IN + OUT", "SECONDS", "$ PER TASK")
        write_table(titles, [_row(description) for description in described.descriptions])
    for description in described.descriptions:
        written = f" (written by {description.written_by})" if description.written_by else ""
        say(f"\n{description.model}{written}\n{clean(description.text)}")
        for note in description.notes:
            say(f"{description.model}: {one_line(note)}", error=True)
    if saved is not None:
        say(f"\n{saved}: pool {described.pool.id} with {len(described.descriptions)} new descriptions")


def _row(description: Description) -> tuple[str, ...]:
    from concertino_bench.model_cards.facts import percent, show_seconds, show_usd

    profile = description.profile
    overall, usd = profile.overall, profile.usd_per_task
    tokens = "unknown"
    if profile.input_tokens is not None and profile.output_tokens is not None:
        tokens = f"{profile.input_tokens:.0f} + {profile.output_tokens:.0f}"
    return (
        profile.model,
        percent(overall.accuracy),
        f"{100 * overall.low:.0f}-{100 * overall.high:.0f} %",
        str(overall.tasks),
        tokens,
        show_seconds(profile.seconds_median),
        "unknown" if usd is None else show_usd(usd),
    )


def _unfinished(described: Described) -> str:
    lines = [f"{name}: {why}" for name, why in described.unfinished.items()]
    kept = "they keep their texts, and the same command continues from here"
    return clean(f"{len(lines)} not described; {kept}\n" + "\n".join(lines))
