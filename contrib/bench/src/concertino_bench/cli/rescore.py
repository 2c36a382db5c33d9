"""`concertino bench rescore`: old results with other graders and rewards, without asking anybody."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from concertino.cli.options import common_options
from concertino.cli.terminal import say, say_json

from .progress import ProgressLine
from .run import selection_of, told_warnings

if TYPE_CHECKING:
    from concertino_bench.rescoring.rescore import Rescored
    from concertino_bench.tasks.task import Task, TaskSet

_SHOWN = 5
"""Left-out items of each reason that are named."""


@click.command("rescore")
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--grader", default="", metavar="NAME", help="Rescore with this one; own: each task's own grader.")
@click.option(
    "--reward",
    "rewards",
    multiple=True,
    metavar="NAME|FILE|all",
    help="Score with a reward that is installed, with one of a file, or with all that are installed.",
)
@click.option(
    "--tasks",
    multiple=True,
    metavar="SET[,OPTION=VALUE…]",
    help="Where the tasks are now; by default where the results say that they were.",
)
@click.option(
    "--out",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Results file; one that is there is continued.  [default: RESULTS with .rescored before its ending]",
)
@common_options
def rescore_command(
    results: Path, grader: str, rewards: tuple[str, ...], tasks: tuple[str, ...], out: Path | None, as_json: bool
) -> None:
    """Rescore RESULTS with other graders and rewards. No model and no tool is asked.

    Answers and calls are read from the traces beside the results. The new file is a results file too, so report and
    compare read it; what a reward gives is a value of each item. The same command continues where it was interrupted.

    \b
    JSON: {"file", "items", "total", "fresh", "seconds",
           "systems": {NAME: {"right", "done", "changed", "rewards": {NAME: mean}}},
           "left_out": [{"system", "task", "sample", "reason", "detail"}],
           "lacking": {REWARD: {"items", "why"}}, "notes": [text]}

    Ends with status 1 if something could not be rescored.
    """
    from concertino_bench.rescoring.rescore import Rescoring, rescore
    from concertino_bench.rescoring.rewarding import choose_rewards, installed_run_rewards
    from concertino_bench.tasks.installed import installed_graders

    if not grader and not rewards:
        raise click.UsageError("name what to grade with: --grader NAME, --reward NAME, or both")
    chosen = choose_rewards(rewards, installed_run_rewards() if rewards else {})
    notes: list[str] = []
    with told_warnings():
        known = _tasks(results, tasks, notes, needed=bool(grader))
    how = Rescoring(grader, chosen, installed_graders(), known)
    target = out or results.with_suffix(f".rescored{results.suffix}")
    line = ProgressLine(quiet=as_json)

    def show(done: int, total: int) -> None:
        line.show(f"{done}/{total} items", now=line.terminal and done == total)

    try:
        found = asyncio.run(rescore(results, target, how, on_progress=show))
    except KeyboardInterrupt:
        line.end()
        say(f"interrupted; what is done is in {target}, and the same command continues", error=True)
        sys.exit(130)
    line.end()
    notes += found.before.notes
    if as_json:
        say_json(summary_of(found, notes))
    else:
        _tell(found, notes)
    if found.left_out or found.lacking:
        sys.exit(1)


def _tasks(results: Path, named: Sequence[str], notes: list[str], *, needed: bool) -> dict[str, tuple[Task, TaskSet]]:
    """By id, the tasks with their sets: those that are named, else those that the results name."""
    from concertino import UsageError

    from concertino_bench.reports.results import read_results
    from concertino_bench.runner.files import TASKS, make_selection
    from concertino_bench.tasks.installed import installed_task_sets

    sets = installed_task_sets()
    if named:
        selections = [selection_of(text, sets) for text in named]
        return {task.id: (task, each.set) for each in selections for task in each.tasks()}
    try:
        said = [
            {"set": str(each["name"]), **{k: v for k, v in each.items() if k in TASKS["properties"] and v is not None}}
            for each in read_results(results, lenient=True).header.get("sets", ())
        ]
        _refuse_outside(said, results)
        selections = [make_selection(each, sets, f"{results}, its task set", Path()) for each in said]
        return {task.id: (task, each.set) for each in selections for task in each.tasks()}
    except (UsageError, KeyError, TypeError, AttributeError) as error:
        text = f"the tasks cannot be read again: {error}; name them with --tasks SET,path=FILE"
        if needed:
            raise UsageError(text) from error
        notes.append(f"{text}; rewards are computed without them")
        return {}


def _refuse_outside(said: Sequence[Mapping[str, Any]], results: Path) -> None:
    """Results may be a stranger's, and what they name outside of the folder is opened only if a person names it."""
    from concertino import UsageError
    from concertino.core.display_text import clean
    from concertino.core.document_dangers import document_dangers

    dangers = document_dangers(list(said), Path())
    if dangers and document_dangers(list(said), results.parent):
        raise UsageError(f"{results} names what lies outside of this folder and of its own: {clean(dangers[0].text)}")


def summary_of(found: Rescored, notes: Sequence[str]) -> dict[str, Any]:
    """What is told of a file that was rescored, as JSON."""
    return {
        "file": str(found.path),
        "items": len(found.items),
        "total": len(found.before.items),
        "fresh": found.fresh,
        "seconds": round(found.seconds, 3),
        "systems": _systems(found),
        "left_out": [each.to_json() for each in found.left_out],
        "lacking": {name: {"items": count, "why": why} for name, (count, why) in found.lacking.items()},
        "notes": list(notes),
    }


def _systems(found: Rescored) -> dict[str, dict[str, Any]]:
    from concertino_bench.tasks.item import REWARD

    told: dict[str, dict[str, Any]] = {}
    for system in found.before.systems:
        items = [item for item in found.items.values() if item.key.system == system]
        names = sorted({name for item in items for name in item.values if name.startswith(REWARD)})
        columns = {name: [item.values[name] for item in items if name in item.values] for name in names}
        told[system] = {
            "right": sum(item.right for item in items),
            "done": len(items),
            "changed": found.changed(system),
            "rewards": {
                name.removeprefix(REWARD): sum(column) / len(column)
                for name, column in columns.items()
                if ":" not in name
            },
        }
    return told


def _tell(found: Rescored, notes: Sequence[str]) -> None:
    from concertino_bench.rescoring.rescore import REASONS

    for name, of in _systems(found).items():
        rewards: Mapping[str, float] = of["rewards"]
        more = "".join(f"  {reward} {value:.4g}" for reward, value in rewards.items())
        say(f"{name}  {of['right']}/{of['done']} right, {of['changed']} verdicts changed{more}")
    say(f"{len(found.items)} of {len(found.before.items)} items in {found.path}; concertino bench report {found.path}")
    for note in notes:
        say(note, error=True)
    for reason, meaning in REASONS.items():
        left = [each for each in found.left_out if each.reason == reason]
        if left:
            say(f"{len(left)} left out: {meaning}", error=True)
        for each in left[:_SHOWN]:
            say(f"  {each.key.system}, {each.key.task}, sample {each.key.sample}: {each.detail}", error=True)
        if len(left) > _SHOWN:
            say(f"  and {len(left) - _SHOWN} more; --json names all", error=True)
    for name, (count, why) in found.lacking.items():
        say(f"the reward {name} could not score {count} items: {why}", error=True)
