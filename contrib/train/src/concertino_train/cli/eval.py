"""`concertino train eval`: a checkpoint, measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from concertino_train.running.quiet import set_quiet_environment

from .options import TrainingOptions, training_options
from .settings import names_path, settings, teller, write, write_json

if TYPE_CHECKING:
    from concertino_train.config.config import TrainConfig


@click.command("eval")
@training_options(
    click.option(
        "--checkpoint",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="A model, a checkpoint or a training; by default the newest of the same output.",
    ),
    click.option(
        "--pool",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Evaluate with another pool than that of the training.",
    ),
    click.option(
        "--unseen",
        metavar="WHAT[,WHAT…]",
        help="Draw at random for each task: names, order, cards (wording), prices, skills (who is there).",
    ),
    click.option(
        "--counterfactuals", is_flag=True, help="Also ask over the pool reversed, and with its descriptions permuted."
    ),
    click.option("--system", metavar="NAME", default="", help="Name of the system in the results."),
    click.option(
        "--traces", type=click.IntRange(min=0), default=0, metavar="N", help="Write this many rollouts as traces."
    ),
)
def eval_command(
    given: TrainingOptions,
    checkpoint: Path | None,
    pool: Path | None,
    unseen: str | None,
    counterfactuals: bool,
    system: str,
    traces: int,
) -> None:
    """Measure a checkpoint on the tasks of `tasks.eval`.

    Writes a results file for `concertino bench report` and `compare`.

    JSON: {"results", "system", "tasks", "rollouts", "metrics", "figures", "reward", "pool", "trained_pool", "seconds",
    "traces"}
    """
    set_quiet_environment()
    config = _changed(settings(given), unseen, counterfactuals)
    # A path in the settings is where a training began; only the command line's names what to measure.
    if checkpoint is not None or not (config.model.path and names_path(given.overrides)):
        changed = config.model.model_copy(update={"path": str(find_model_of(checkpoint, Path(config.trainer.output)))})
        config = config.model_copy(update={"model": changed})
    if given.dry_run:
        from .dry_run import dry_run

        dry_run(config, "eval", given)
        return
    from concertino_train.evaluation.measurement import run_eval

    name = system or _name(checkpoint or Path(config.model.path)) + (f"-{pool.stem}" if pool is not None else "") + (
        "-unseen" if unseen else ""
    )
    result = run_eval(config, pool=pool, system=name, traces=traces, reporter=teller(given))
    if given.as_json:
        write_json(result.to_json())
    else:
        write(*result.lines(), f"results: {result.results}; concertino bench report {result.results}")


def _changed(config: TrainConfig, unseen: str | None, counterfactuals: bool) -> TrainConfig:
    """The settings with what these options say of the pool."""
    from concertino_bench.tasks.unseen import parse_drawn

    changes: dict[str, object] = {"unseen": list(parse_drawn(unseen))} if unseen is not None else {}
    if counterfactuals:
        changes["counterfactuals"] = True
    own = config.trainer.eval.model_copy(update=changes)
    return config.model_copy(update={"trainer": config.trainer.model_copy(update={"eval": own})})


def find_model_of(checkpoint: Path | None, output: Path) -> Path:
    """The folder of weights, or of those of all roles.

    Raises:
        UsageError: there are none.
    """
    from concertino import UsageError

    from concertino_train.export import find_policies

    for each in [checkpoint] if checkpoint is not None else [output / "rl", output / "sft"]:
        if each.is_dir() and (found := find_policies(each)) is not None:
            return found
    given = f"{checkpoint} holds no model" if checkpoint is not None else f"{output} holds no trained model yet"
    raise UsageError(f"{given}; name one with --checkpoint, or give model.path=FOLDER")


def _name(path: Path) -> str:
    """`rl` for `out/rl/model`, `checkpoint-20` for that."""
    own = path.resolve()
    return own.parent.name if own.name == "model" else own.name
