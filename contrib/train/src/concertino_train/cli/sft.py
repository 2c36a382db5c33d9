"""`concertino train sft`: SFT from a settings file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from concertino_train.running.quiet import set_quiet_environment

from .options import TrainingOptions, training_options
from .settings import settings, teller, write, write_json


@click.command("sft")
@training_options(
    click.option(
        "--set",
        "sets",
        multiple=True,
        type=click.Path(exists=True, path_type=Path),
        metavar="FOLDER",
        help="What to learn from; by default data.sets, or what was collected in the same output.",
    ),
    resumes=True,
)
def sft_command(given: TrainingOptions, sets: tuple[Path, ...]) -> None:
    """Train a policy on good trajectories: on the orchestrator's own tokens, and nothing else.

    JSON: {"folder", "model", "step", "steps", "stopped", "rows", "dropped", "figures", "seconds"}

    Ends with status 130 if it was stopped.
    """
    set_quiet_environment()
    config = settings(given)
    if given.dry_run:
        from .dry_run import dry_run

        dry_run(config, "sft", given)
        return
    from concertino_train.sft.training import run_sft

    result = run_sft(
        config, sets=sets, reporter=teller(given), resume=given.resume, restart=given.restart, force=given.force
    )
    if given.as_json:
        write_json(result.to_json())
    elif result.model is not None:
        write(f"{result.rows} conversations, {result.step} steps in {result.seconds:.0f} s", f"model: {result.model}")
    if result.stopped:
        sys.exit(130)
