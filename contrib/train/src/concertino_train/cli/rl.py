"""`concertino train rl`: reinforcement learning from a settings file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from concertino_train.running.quiet import set_quiet_environment

from .options import common_options, config_options, estimating_options, going_on_options, view_option
from .settings import settings, taught, teller, write, write_json


@click.command("rl")
@config_options
@going_on_options
@estimating_options
@view_option
@common_options
def rl_command(
    source: str,
    overrides: tuple[str, ...],
    output: Path | None,
    resume: bool,
    restart: bool,
    force: bool,
    dry_run: bool,
    tflops: float | None,
    live: bool | None,
    as_json: bool,
) -> None:
    """Train a policy by reinforcement learning.

    It starts from the model of `concertino train sft` in the same output, if there is one. The first batch is audited
    before anything is learnt. SIGINT or SIGTERM ends it after a step, with a checkpoint; a second one at once (with a
    model for each role, after the rollouts or the update under way).

    JSON: {"folder", "model", "checkpoint", "step", "steps", "stopped", "figures", "warnings", "seconds"}

    Ends with status 130 if it was stopped.
    """
    set_quiet_environment()
    config, note = taught(settings(source, overrides, output), overrides)
    if dry_run:
        from .dry_run import dry_run as tell

        begins = "resumes from the newest checkpoint, if there is one" if resume else note or "starts with new weights"
        tell(config, "rl", source, overrides, as_json, tflops, begins)
        return
    from concertino_train.rl.training import run_rl

    told = teller(as_json, live)
    if note and not resume:
        told.say(note)
    result = run_rl(
        config, output=Path(config.trainer.output) / "rl", resume=resume, restart=restart, force=force, reporter=told
    )
    if as_json:
        write_json(result.to_json())
    elif result.model is not None:
        shown = {name: result.figures[name] for name in ("reward", "success", "eval/success") if name in result.figures}
        told_as = "  ".join(f"{name} {value:.3f}" for name, value in shown.items())
        write(f"{result.step} steps in {result.seconds:.0f} s  {told_as}", f"model: {result.model}")
    if result.stopped:
        sys.exit(130)
