"""`concertino train`: collect, teach, reinforce, measure, export; each from one settings file.

_options   what several verbs take        _settings  from a command line to a training
_dry_run   what would be done             _collect, _sft, _rl, _eval, _export, _recipes, _template  a verb each

Invariant: `--help` imports no verb and no torch; results go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import click
from concertino.cli import VerbGroup


class Verb(NamedTuple):
    """Where a verb is, as `module:attribute`, and its line in `--help`."""

    target: str
    help: str


_HERE = __package__
VERBS: dict[str, Verb] = {
    "recipes": Verb(f"{_HERE}._recipes:recipes_command", "List the recipes that come along, or print one."),
    "collect": Verb(f"{_HERE}._collect:collect_command", "Have a teacher work on tasks, and make a set of it."),
    "sft": Verb(f"{_HERE}._sft:sft_command", "Teach a policy what good trajectories wrote."),
    "audit": Verb("concertino_train.audit:audit_command", "Look for faults of a reward before training on it."),
    "rl": Verb(f"{_HERE}._rl:rl_command", "Train a policy by reinforcement learning."),
    "eval": Verb(f"{_HERE}._eval:eval_command", "Measure a checkpoint on tasks, also over another pool."),
    "export": Verb(f"{_HERE}._export:export_command", "Write a checkpoint as a model that can be used at once."),
    "study": Verb(f"{_HERE}._study:study_command", "Train arms that differ in one thing, over seeds, and compare."),
    "inspect-template": Verb(f"{_HERE}._template:template_command", "Show what a chat template makes of a talk."),
}
"""In the order of a training."""


@click.group("train", cls=VerbGroup, verbs=VERBS, subcommand_metavar="VERB [ARGS]...")
def train() -> None:
    """Train an orchestrator: collect, sft, rl, eval, export.

    A settings file, or the name of a recipe, says everything; KEY=VALUE changes it: trainer.rl.steps=50. What it names
    as module:function is looked for in the working folder, too.
    """
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)


__all__ = ["VERBS", "train"]
