"""`concertino pool describe`: descriptions of models from how they do on tasks: counted as it goes on, then shown."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .drive import guarded
from .failures import Failed, Interrupted
from .options import PoolChoice, common_options, pool_options, warn_about_broken_plugins
from .options import _full_name as full_name
from .output import clean, one_line, write_json, write_table
from .status_line import StatusLine

if TYPE_CHECKING:
    from concertino.describing import Described, Description, Progress
    from concertino.members.specs import ModelSpec
    from concertino.pool.pool import Pool

_EXAMPLES = """\b
Examples:
  concertino pool describe --budget usd=0.5 --save pool.toml
  concertino pool describe --models 'vllm/*' --writer sage --tasks mine.jsonl
"""


@click.command("describe", epilog=_EXAMPLES)
@pool_options
@click.option("--models", multiple=True, metavar="PATTERN", help="Describe these models only; by default all.")
@click.option(
    "--tasks", "task_file", type=click.Path(path_type=Path), metavar="FILE", help="Tasks of your own (JSONL)."
)
@click.option("--sample", type=click.IntRange(min=1), metavar="NUMBER", help="So many of the tasks, kinds even.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws another sample.")
@click.option("--repeats", type=click.IntRange(min=1), default=1, show_default=True, help="How often each is asked.")
@click.option("--writer", metavar="NAME", help="The model that writes; by default the role 'writer', if it is bound.")
@click.option("--no-writer", is_flag=True, help="The figures alone, in words.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where answers and texts are kept; by default .concertino/descriptions.",
)
@click.option("--refresh", is_flag=True, help="Ask again what is known.")
@click.option("--budget", default="", metavar="LIMITS", help="Such as usd=0.5,seconds=600.")
@click.option(
    "--concurrency", type=click.IntRange(min=1), default=8, show_default=True, help="Requests to one model at once."
)
@click.option("--trace", type=click.Path(path_type=Path), metavar="FOLDER", help="Where to record the requests.")
@click.option("--save", type=click.Path(path_type=Path), metavar="FILE", help="A pool file for the described pool.")
@common_options
def describe_models(
    choice: PoolChoice, writer: str | None, no_writer: bool, save: Path | None, as_json: bool, **options: Any
) -> None:
    """Describe the models of a pool from how they do on tasks: figures, and what a writer model makes of them.

    Every answer is kept the moment it comes, so nothing is paid for twice: not after an interruption, and not when a
    model is added. Exit code: 0 if every model is described, 1 if not, 130 after Ctrl-C.

    \b
    JSON: {"pool", "descriptions": [{"model", "text", "written_by", "at", "evidence",
           "notes", "profile"}], "unfinished": {model: why}, "asked", "known",
           "problems", "usage", "saved"}
    """
    from concertino.core.errors import UsageError

    if writer and no_writer:
        raise UsageError("--writer and --no-writer exclude each other")
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
        raise Failed("" if as_json else _unfinished(described))


def _refuse_unsavable(pool: Pool, file: Path) -> None:
    """Find out before anything is asked whether the pool can be written to such a file."""
    from concertino.core.errors import PoolError

    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / f"pool{file.suffix}"
        try:
            pool.save(trial)
        except PoolError as error:
            raise PoolError(str(error).replace(str(trial), str(file))) from error


def _writer(name: str | None, pool: Pool, choice: PoolChoice) -> str | ModelSpec:
    """The writer, also where the patterns of the choice leave it out of the pool."""
    if name is None:
        return "writer"
    if name in pool.roles or any(name in (spec.name, spec.short_name) for spec in pool.models):
        return name
    whole = PoolChoice(choice.file, roles=choice.roles).open()
    return whole.model(full_name(whole, name))


def _run(pool: Pool, writer: str | ModelSpec | None, as_json: bool, **options: Any) -> Described:
    from concertino.core.budget import Budget
    from concertino.describing import DEFAULT_CACHE, describe

    line = _Line()
    show = guarded(lambda record: line.show(record["progress"]))
    folder, budget = options.pop("cache") or DEFAULT_CACHE, Budget.parse(options.pop("budget"))

    async def work() -> Described | None:
        try:
            return await describe(
                pool,
                options.pop("task_file"),
                writer=writer,
                cache=folder,
                budget=budget,
                on_progress=None if as_json else lambda progress: show({"progress": progress}),
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
        raise Interrupted(f"cancelled; what was answered is kept in {folder}: the same command goes on{again}")
    return described


class _Line:
    """Progress on stderr: on a terminal one line that is written again and again, elsewhere one every tenth of all."""

    def __init__(self) -> None:
        self._line = StatusLine()
        self._tenth = 0

    def show(self, progress: Progress) -> None:
        """Write it, if it is time to."""
        self._line.show(_progress(progress))
        tenth = 10 * progress.done // max(1, progress.total)
        if not self._line.terminal and tenth > self._tenth:
            self._tenth = tenth
            click.echo(_progress(progress), err=True)

    def end(self) -> None:
        """Leave the line clear."""
        self._line.end()


def _progress(progress: Progress) -> str:
    known = f", {progress.known} of them known" if progress.known else ""
    left = progress.seconds_left
    writing = f", {progress.writing} texts being written" if progress.writing else ""
    time_left = f", about {left:.0f} s left" if left and left >= 1 else ""
    return f"{progress.done} of {progress.total} answers{known}{writing}{time_left}"


# -- what came of it ---------------------------------------------------------------------------------------------------


def _show(described: Described, saved: Path | None) -> None:
    for problem in described.problems:
        click.echo(f"damaged: {clean(problem)}", err=True)
    if described.descriptions:
        titles = ("MODEL", "CORRECT", "95 %", "TASKS", "TOKENS IN + OUT", "SECONDS", "$ PER TASK")
        write_table(titles, [_row(description) for description in described.descriptions])
    for description in described.descriptions:
        written = f" (written by {description.written_by})" if description.written_by else ""
        click.echo(f"\n{description.model}{written}\n{clean(description.text)}")
        for note in description.notes:
            click.echo(f"{description.model}: {one_line(note)}", err=True)
    if saved is not None:
        click.echo(f"\n{saved}: pool {described.pool.id} with {len(described.descriptions)} new descriptions")


def _row(description: Description) -> tuple[object, ...]:
    from concertino.describing._facts import percent, show_seconds, show_usd

    profile = description.profile
    overall, usd = profile.overall, profile.usd_per_task
    tokens = "unknown"
    if profile.input_tokens is not None and profile.output_tokens is not None:
        tokens = f"{profile.input_tokens:.0f} + {profile.output_tokens:.0f}"
    return (
        profile.model,
        percent(overall.accuracy),
        f"{100 * overall.low:.0f}-{100 * overall.high:.0f} %",
        overall.tasks,
        tokens,
        show_seconds(profile.seconds_median),
        "unknown" if usd is None else show_usd(usd),
    )


def _unfinished(described: Described) -> str:
    lines = [f"{name}: {why}" for name, why in described.unfinished.items()]
    kept = "they keep their texts, and the same command goes on from here"
    return clean(f"{len(lines)} not described; {kept}\n" + "\n".join(lines))
