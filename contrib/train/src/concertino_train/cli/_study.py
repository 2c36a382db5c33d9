"""`concertino train study`: arms that differ in one thing, over seeds."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ._options import common_options
from ._settings import quiet, write, write_json


@click.command("study")
@click.argument("name", required=False)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER", default=Path("studies"),
              show_default=True, help="Folder of all trainings; an interrupted study goes on there.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Trainings of each arm.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Trainings at once.")
@common_options
def study_command(
    name: str | None, overrides: tuple[str, ...], output: Path, seeds: int, jobs: int, as_json: bool
) -> None:
    """Train arms that differ in one thing, with several seeds, and compare them; without a name: list the studies.

    KEY=VALUE changes settings of all arms: trainer.rl.steps=10.

    JSON: {"study", "seeds", "findings": [{"arm", "measure", "value", "difference", "expected", "held"}]}, or
    [{"name", "question", "recipe", "arms"}]
    """
    quiet()
    from concertino import UsageError
    from concertino.schema import near_names

    from concertino_train.studies import STUDIES, findings, run_study, table

    if name is None:
        rows = [
            {"name": s.name, "question": s.question, "recipe": s.recipe, "arms": [arm.name for arm in s.arms]}
            for s in STUDIES.values()
        ]
        if as_json:
            write_json(rows)
        else:
            write(*(f"{row['name']:<14} {row['question']}" for row in rows))
        return
    if name not in STUDIES:
        near = near_names(name, list(STUDIES), limit=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(STUDIES)}"
        raise UsageError(f"no study {name!r}; {hint}")
    study, home = STUDIES[name], output / name
    trained = run_study(
        study, home, seeds=range(seeds), jobs=jobs, settings=overrides, tell=lambda line: click.echo(line, err=True)
    )
    found = findings(study, trained)
    text = table(study, found, seeds)
    (home / "study.md").write_text(text, encoding="utf-8")
    data = {"study": name, "seeds": seeds, "findings": [each.to_json() for each in found]}
    (home / "study.json").write_text(json.dumps(data, indent=2), encoding="utf-8")
    if as_json:
        write_json(data)
    else:
        click.echo(text, nl=False)
