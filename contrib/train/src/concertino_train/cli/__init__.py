"""`concertino train`: collect, sft, rl, eval, export; each from one settings file.

options   what several commands take      settings  from a command line to a training
dry_run   what would be done              estimate  memory, tokens, arithmetic, money
gpus      kinds of GPUs, as data          gpu_plan  ways to train on them
measured_steps  what steps took, beside a plan
collect, sft, audit, rl, eval, plan, export, study, recipes, scorer, template  a command each

Invariant: `--help` imports no command and no torch; results go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import click
from concertino.cli import CommandGroup
from concertino.cli.group import CommandPlace

_HERE = __package__
COMMANDS: dict[str, CommandPlace] = {
    "recipes": CommandPlace(f"{_HERE}.recipes:recipes_command", "List the included recipes, or print one."),
    "collect": CommandPlace(f"{_HERE}.collect:collect_command", "Collect teacher trajectories into a dataset."),
    "sft": CommandPlace(f"{_HERE}.sft:sft_command", "Train a policy on good trajectories (SFT)."),
    "audit": CommandPlace(f"{_HERE}.audit:audit_command", "Check a reward for faults before training on it."),
    "rl": CommandPlace(f"{_HERE}.rl:rl_command", "Train a policy by reinforcement learning."),
    "eval": CommandPlace(f"{_HERE}.eval:eval_command", "Evaluate a checkpoint on tasks, optionally with another pool."),
    "plan": CommandPlace(f"{_HERE}.plan:plan_command", "Say what fits on which GPUs, and what it costs."),
    "export": CommandPlace(f"{_HERE}.export:export_command", "Export a checkpoint as a ready-to-use model."),
    "study": CommandPlace(
        f"{_HERE}.study:study_command", "Train arms that differ in one thing, over seeds, and compare."
    ),
    "scorer": CommandPlace(f"{_HERE}.scorer:scorer_command", "Train a scorer, which reads descriptions of members."),
    "inspect-template": CommandPlace(
        f"{_HERE}.template:template_command", "Show what a chat template makes of a conversation."
    ),
}
"""In the order of a training."""


@click.group("train", cls=CommandGroup, places=COMMANDS, subcommand_metavar="COMMAND [ARGS]...")
def train() -> None:
    """Train an orchestrator: collect, sft, rl, eval, export.

    A settings file, or the name of a recipe, says everything; KEY=VALUE changes it: trainer.rl.steps=50. What it names
    as module:function is looked for in the working folder, too.
    """


__all__ = ["train"]
