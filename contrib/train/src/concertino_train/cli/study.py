"""`concertino train study`: arms that differ in one thing, over seeds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from concertino.cli.terminal import say

from concertino_train.running.quiet import set_quiet_environment

from .options import common_options
from .settings import write, write_json

if TYPE_CHECKING:
    from concertino_train.studies.study import Study


@click.command("study")
@click.argument("names", nargs=-1, metavar="[NAME | KEY=VALUE]...")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    default=Path("studies"),
    show_default=True,
    help="Folder of all trainings; an interrupted study continues there.",
)
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Trainings of each arm.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Trainings at once.")
@click.option(
    "--env",
    "env_from",
    multiple=True,
    metavar="NAME",
    help="Environment variable that the trainings are given, such as OPENAI_API_KEY; may be repeated.",
)
@common_options
def study_command(
    names: tuple[str, ...], output: Path, seeds: int, jobs: int, env_from: tuple[str, ...], as_json: bool
) -> None:
    """Train arms that differ in one thing, with several seeds, and compare them; without a name: list the studies.

    Of several names, one study follows the other, and equal SFT runs are made once. KEY=VALUE changes settings
    of all arms: trainer.rl.steps=10. Each training is a process of its own, which gets no keys but those named by
    --env.

    JSON: [{"study", "question", "recipe", "seeds", "cpu_seconds", "findings": [{"arm", "measure", "value",
    "difference", "expected", "held"}]}], or [{"name", "question", "recipe", "arms"}]
    """
    set_quiet_environment()
    from concertino_train.studies.catalogue import STUDIES

    settings = [each for each in names if "=" in each]
    wanted = [_named(each) for each in names if "=" not in each]
    if not wanted:
        rows = [
            {"name": s.name, "question": s.question, "recipe": s.recipe, "arms": [arm.name for arm in s.arms]}
            for s in STUDIES.values()
        ]
        if as_json:
            write_json(rows)
        else:
            write(*(f"{row['name']:<18} {row['question']}" for row in rows))
        return
    told = [_studied(study, output, seeds, jobs, settings, env_from, as_json) for study in wanted]
    if as_json:
        write_json(told)


def _named(name: str) -> Study:
    """The study of a name.

    Raises:
        UsageError: there is none.
    """
    from concertino import UsageError

    from concertino_train.settings import did_you_mean
    from concertino_train.studies.catalogue import STUDIES

    if name in STUDIES:
        return STUDIES[name]
    raise UsageError(f"no study {name!r}; {did_you_mean(name, list(STUDIES))}")


def _studied(
    study: Study,
    output: Path,
    seeds: int,
    jobs: int,
    settings: Sequence[str],
    env_from: Sequence[str],
    as_json: bool,
) -> dict[str, Any]:
    """Run one study, write what it found, and tell it."""
    from concertino_train.running.curves import can_plot
    from concertino_train.studies.comparison import findings, table
    from concertino_train.studies.drawing import draw
    from concertino_train.studies.runs import run_study, spent_seconds

    trained = run_study(
        study,
        output,
        seeds=range(seeds),
        jobs=jobs,
        settings=settings,
        tell=lambda line: say(line, error=True),
        env_from=env_from,
    )
    found = findings(study, trained)
    spent = spent_seconds(study, output)
    text, home = table(study, found, seeds, spent), output / study.name
    if can_plot():
        draw(study, found, home / "study.svg")
    (home / "study.md").write_text(text, encoding="utf-8")
    data = {
        "study": study.name,
        "question": study.question,
        "recipe": study.recipe,
        "seeds": seeds,
        "cpu_seconds": spent,
        "findings": [each.to_json() for each in found],
    }
    (home / "study.json").write_text(json.dumps(data, indent=2), encoding="utf-8")
    if not as_json:
        say(text, nl=False)
    return data
