"""`concertino train plan`: what a training would take on GPUs, before anything is started."""

from __future__ import annotations

from pathlib import Path

import click

from .options import common_options
from .settings import write, write_json


@click.command("plan")
@click.option(
    "--gpus", required=True, metavar="NxNAME", help="How many of which, such as 1xH200; `here`: this machine."
)
@click.option("--model", metavar="SIZE|FOLDER|NAME", help="8B, a folder, or a name on the Hub; that of the settings.")
@click.option(
    "--config", "source", default="paramanager", metavar="FILE|RECIPE", help="The training; default: paramanager."
)
@click.option("--work", type=click.Choice(["rl", "sft"]), default="rl", help="The kind of training; default: rl.")
@click.option("--hourly", type=click.FloatRange(min=0), metavar="USD", help="The price of one GPU for an hour, in $.")
@click.option(
    "--measured",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="The output of a training, such as out/rl: what it took is shown beside the plan.",
)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@common_options
def plan_command(
    gpus: str,
    model: str | None,
    source: str,
    work: str,
    hourly: float | None,
    measured: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say what fits on GPUs, how long a step takes, what is slow and what it costs.

    Nothing is downloaded, loaded or started. Every way to train is tried: as the settings say, with activations
    computed again, with an adapter.

    JSON: {"count", "gpu", "hourly", "steps", "ways", "chosen", "notes", "measured"}

    Ends with status 1 if the training fits in none of these ways.
    """
    from .gpu_plan import plan_training
    from .gpus import read_gpus
    from .measured_steps import compare_steps, read_steps

    if model is not None:
        overrides = (*overrides, f"model.path={model}", "model.new=null")
    found = plan_training(source, overrides, work, read_gpus(gpus), hourly)
    steps = None if measured is None else read_steps(measured)
    if as_json:
        write_json({**found.to_json(), "measured": None if steps is None else steps.to_json()})
    else:
        write(*found.lines())
        if steps is not None:
            write(*compare_steps(found.ways[0], steps))
    if found.chosen is None and any(way.fits is False for way in found.ways):
        raise click.exceptions.Exit(1)
