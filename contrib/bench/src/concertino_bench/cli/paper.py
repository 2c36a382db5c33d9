"""`concertino bench paper`: a table of a paper, run again over a pool of one's own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from concertino.cli.options import common_options
from concertino.cli.output import write_json
from concertino.cli.terminal import say

from .place_options import place_options
from .run import EvaluationProgress, broken_of, tell_broken, told_warnings

if TYPE_CHECKING:
    from concertino import Pool

    from concertino_bench.papers.recipe import Recipe
    from concertino_bench.papers.repeating import Choices, Place
    from concertino_bench.runner.evaluator import Progress


@click.command("paper")
@click.argument("name", required=False, metavar="[PAPER/TABLE]")
@click.option("--pool", "pool_file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Pool file.")
@click.option(
    "--data",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the files of the task sets, named as the recipe says.",
)
@click.option("--alone", default="orchestrator", show_default=True, help="The model of systems that ask one model.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many tasks of each data set.")
@click.option(
    "--skip-bad",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Leave out at most so many wrong rows of each data set; each is told.",
)
@click.option("--samples", type=click.IntRange(min=1), help="How often each task is asked.  [default: as in the paper]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of sampling.")
@click.option(
    "--max-usd", type=click.FloatRange(min=0), help="In each data set, begin nothing more once so many $ are spent."
)
@click.option("--concurrency", type=click.IntRange(min=1), default=16, show_default=True, help="Runs at once.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the results; what is there is continued.  [default: the name of the table]",
)
@place_options
@common_options
def paper_command(
    name: str | None,
    pool_file: Path | None,
    folder: Path | None,
    alone: str,
    limit: int | None,
    skip_bad: int,
    samples: int | None,
    seed: int,
    max_usd: float | None,
    concurrency: int,
    out: Path | None,
    on: str,
    env_from: tuple[str, ...],
    as_json: bool,
) -> None:
    """Repeat a table of a paper, and print our numbers beside the published ones.

    Without PAPER/TABLE it lists the recipes, and the tables that cannot be repeated with the reason. Without --pool it
    shows one recipe: the published rows, the files that it wants, what is the same and what differs. The same command
    continues where it was interrupted.

    \b
    JSON of a table: {"recipe", "source", "title", "columns": {NAME: unit},
           "published": {ROW: {COLUMN: number}},
           "ours": {SYSTEM: {"beside", "runs", "values": {COLUMN: number}}},
           "tasks": {DATA: count}, "same", "differs", "notes": [text]}
    JSON of the list: {"recipes": [{"name", "source", "title", "files"}],
           "left_out": [{"name", "title", "reason"}]}

    Ends with status 1 if runs are missing or a system broke.
    """
    from concertino_bench.papers.recipe import find_recipe
    from concertino_bench.papers.repeating import Choices, Place

    if name is None:
        _list(as_json)
        return
    recipe = find_recipe(name)
    if pool_file is None:
        _show(recipe, as_json)
        return
    if folder is None and any(data.files for data in recipe.data):
        raise click.UsageError(f"--data: expected the folder with the files; concertino bench paper {name} names them")
    import concertino as ct

    choices = Choices(alone, limit, samples, seed, max_usd, skip_bad)
    target = out or Path(name.replace("/", "-"))
    place = Place(concurrency, on, env_from)
    _repeat(recipe, ct.Pool.load(pool_file), folder or Path(), choices, target, place, as_json)


def _repeat(recipe: Recipe, pool: Pool, folder: Path, choices: Choices, out: Path, place: Place, as_json: bool) -> None:
    from concertino_bench.papers.repeating import repeat, wanted
    from concertino_bench.papers.table import table_of
    from concertino_bench.tasks.installed import installed_graders, installed_task_sets

    with told_warnings():
        wants = wanted(recipe, pool, folder, installed_task_sets(), choices)
    for each in wants:
        if each.missing:
            say(f"left out: {each.missing}", error=True)
    shown = EvaluationProgress(quiet=as_json)

    def told(data: str, progress: Progress) -> None:
        shown(progress)

    work = repeat(wants, pool, out, graders=installed_graders(), place=place, on_progress=told)
    try:
        done = asyncio.run(work)
    except KeyboardInterrupt:
        shown.end()
        say(f"interrupted; what is done is in {out}, and the same command continues", error=True)
        sys.exit(130)
    shown.end()
    table = table_of(recipe, wants, out)
    if as_json:
        write_json(table.to_json())
    else:
        say("\n".join(table.lines()))
        for note in table.notes:
            say(f"not in the table: {note}", error=True)
        say(f"the results are in {out}; concertino bench report {out}/*.jsonl", error=True)
    for outcome in done.values():
        tell_broken(outcome)
    if any(outcome.missing or broken_of(outcome) for outcome in done.values()):
        sys.exit(1)


def _list(as_json: bool) -> None:
    from concertino_bench.papers.recipe import left_out_tables, recipes

    if as_json:
        write_json(
            {
                "recipes": [
                    {"name": each.name, "source": each.source, "title": each.title, "files": files_of(each)}
                    for each in recipes().values()
                ],
                "left_out": [vars(each) for each in left_out_tables()],
            }
        )
        return
    width = max(len(name) for name in (*recipes(), *(each.name for each in left_out_tables())))
    for each in recipes().values():
        say(f"{each.name:<{width}}  {each.paper}, {each.table}: {each.title}")
    say("\nnot repeated:")
    for left in left_out_tables():
        say(f"{left.name:<{width}}  {left.title}: {left.reason}")


def _show(recipe: Recipe, as_json: bool) -> None:
    from concertino_bench.papers.table import PaperTable

    table = PaperTable(recipe, ())
    if as_json:
        write_json({**table.to_json(), "files": files_of(recipe)})
        return
    say("\n".join(table.lines()))
    say("files in --data:")
    for name, of in files_of(recipe).items():
        say(f"  {name}: {of or 'none, its tasks are generated'}")


def files_of(recipe: Recipe) -> dict[str, str]:
    """By data, the files that it wants, and the file that its owners publish."""
    from concertino_bench.tasks.installed import installed_task_sets

    sets = installed_task_sets()
    found: dict[str, str] = {}
    for data in recipe.data:
        known = sets.get(data.set)
        where = f" ({known.file}, {known.source})" if known is not None and known.source else ""
        missing = "" if known is not None else f"; the task set {data.set} is not installed"
        named = ", ".join(" or ".join(patterns) for patterns in data.files.values())
        found[data.name] = f"{named}{where}{missing}" if named else missing.strip("; ")
    return found
