"""`concertino train rl`: reinforcement learning from a settings file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from concertino_train.running.quiet import set_quiet_environment

from .options import TrainingOptions, training_options
from .settings import settings, taught, teller, write, write_json


@click.command("rl")
@training_options(resumes=True)
def rl_command(given: TrainingOptions) -> None:
    """Train a policy by reinforcement learning.

    It starts from the model of `concertino train sft` in the same output, if there is one. The first batch is audited
    before anything is learnt. SIGINT or SIGTERM ends it after a step, with a checkpoint; a second one at once (with a
    model for each role, after the rollouts or the update under way).

    JSON: {"folder", "model", "checkpoint", "step", "steps", "stopped", "figures", "warnings", "seconds"}

    Ends with status 130 if it was stopped.
    """
    set_quiet_environment()
    config, note = taught(settings(given), given.overrides)
    if given.dry_run:
        from .dry_run import dry_run

        begins = "resumes from the newest checkpoint, if there is one"
        dry_run(config, "rl", given, begins if given.resume else note or "starts with new weights")
        return
    from concertino_train.rl.training import run_rl

    told = teller(given)
    if note and not given.resume:
        told.say(note)
    result = run_rl(
        config,
        output=Path(config.trainer.output) / "rl",
        reporter=told,
        resume=given.resume,
        restart=given.restart,
        force=given.force,
    )
    if given.as_json:
        write_json(result.to_json())
    elif result.model is not None:
        shown = {name: result.figures[name] for name in ("reward", "success", "eval/success") if name in result.figures}
        told_as = "  ".join(f"{name} {value:.3f}" for name, value in shown.items())
        write(f"{result.step} steps in {result.seconds:.0f} s  {told_as}", f"model: {result.model}")
    if result.stopped:
        # What a shell gives for a command that SIGINT has ended.
        sys.exit(130)
