"""`concertino train sft`: SFT from a settings file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from concertino_train.running.quiet import set_quiet_environment

from .options import common_options, config_options, estimating_options, going_on_options, view_option
from .settings import settings, teller, write, write_json


@click.command("sft")
@config_options
@click.option(
    "--set",
    "sets",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="FOLDER",
    help="What to learn from; by default data.sets, or what was collected in the same output.",
)
@going_on_options
@estimating_options
@view_option
@common_options
def sft_command(
    source: str,
    overrides: tuple[str, ...],
    output: Path | None,
    sets: tuple[Path, ...],
    resume: bool,
    restart: bool,
    force: bool,
    dry_run: bool,
    tflops: float | None,
    live: bool | None,
    as_json: bool,
) -> None:
    """Train a policy on good trajectories: on the orchestrator's own tokens, and nothing else.

    JSON: {"folder", "model", "step", "steps", "stopped", "rows", "dropped", "figures", "seconds"}

    Ends with status 130 if it was stopped.
    """
    set_quiet_environment()
    config = settings(source, overrides, output)
    if dry_run:
        from .dry_run import dry_run as tell

        tell(config, "sft", source, overrides, as_json, tflops)
        return
    from concertino_train.sft.training import run_sft

    result = run_sft(config, sets=sets, resume=resume, restart=restart, force=force, reporter=teller(as_json, live))
    if as_json:
        write_json(result.to_json())
    elif result.model is not None:
        write(f"{result.rows} conversations, {result.step} steps in {result.seconds:.0f} s", f"model: {result.model}")
    if result.stopped:
        sys.exit(130)
