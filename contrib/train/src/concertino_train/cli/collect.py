"""`concertino train collect`: teacher trajectories, and the dataset made of them."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from concertino.cli.terminal import say
from concertino_bench.cli.place_options import place_options

from concertino_train.config.config import TrainConfig
from concertino_train.running.quiet import set_quiet_environment

from .options import TrainingOptions, training_options
from .settings import settings, teller, write, write_json


@click.command("collect")
@training_options(place_options, estimates=False)
def collect_command(given: TrainingOptions, on: str, env_from: tuple[str, ...]) -> None:
    """Collect teacher trajectories into a dataset; every run is kept, and the best ones make the set.

    The same command continues where it was interrupted, also with another --on; finished runs are not repeated. Worker
    processes get no keys but those named by --env.

    JSON: {"results", "runs", "right", "missing", "set", "examples", "left_out": {REASON: count}, "seconds"}

    Ends with status 1 if runs are missing.
    """
    set_quiet_environment()
    config = settings(given)
    if given.dry_run:
        _tell(config, given.as_json)
        return
    from concertino_train.collection import run_collection

    result = run_collection(config, on=on, env_from=env_from, reporter=teller(given))
    if given.as_json:
        write_json(result.to_json())
    else:
        left = ", ".join(f"{count} {reason}" for reason, count in sorted(result.left_out.items())) or "none"
        write(f"{result.right} of {result.runs} runs are right; {result.examples} examples in {result.set}")
        write(f"left out: {left}")
    if result.missing:
        say(f"{result.missing} runs are missing; the same command continues", error=True)
        sys.exit(1)


def _tell(config: TrainConfig, as_json: bool) -> None:
    """What would be done."""
    from concertino_train.collection import in_turn, pool_count
    from concertino_train.factories.questions import select_tasks

    section = config.data.collect
    tasks = len(select_tasks(section.tasks or config.tasks.train, "data.collect.tasks"))
    teachers = 1 if in_turn(config) else max(1, len(section.temperatures)) * max(1, pool_count(config))
    runs = tasks * section.samples * teachers
    if as_json:
        write_json({"config": config.resolved(), "id": config.id, "tasks": tasks, "runs": runs})
        return
    write(config.text().rstrip(), "", f"id           {config.id}", f"runs         {runs} of {tasks} tasks")
    write(f"output       {Path(config.trainer.output) / 'collected'}, {Path(config.trainer.output) / 'set'}")
