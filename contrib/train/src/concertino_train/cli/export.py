"""`concertino train export`: a checkpoint as a ready-to-use model."""

from __future__ import annotations

from pathlib import Path

import click

from concertino_train.running.quiet import set_quiet_environment

from .options import common_options
from .settings import write, write_json


@click.command("export")
@click.argument("checkpoint", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--role", default="", metavar="NAME", help="Role whose policy is exported, if each role has its own.")
@click.option("--merge/--adapter", default=True, show_default=True, help="Put an adapter into the weights below it.")
@click.option("--dtype", type=click.Choice(["float32", "bfloat16", "float16"]), help="Of the weights.")
@click.option("--name", default="", metavar="NAME", help="Of the model; that of the folder by default.")
@click.option("--force", is_flag=True, help="Write into a folder that holds something.")
@common_options
def export_command(
    checkpoint: Path, folder: Path, role: str, merge: bool, dtype: str | None, name: str, force: bool, as_json: bool
) -> None:
    """Write the weights of CHECKPOINT to FOLDER, with tokenizer, declarations for pools, strategy and card.

    CHECKPOINT is a model, a checkpoint, or the folder of a training.

    JSON: {"folder", "name", "files", "kind", "base"}
    """
    set_quiet_environment()
    from concertino_train.export import export

    done = export(checkpoint, folder, role=role, merge=merge, dtype=dtype or "", name=name, force=force)
    if as_json:
        write_json(done.to_json())
    else:
        write(f"{done.kind} {done.name}: {len(done.files)} files in {done.folder}; {done.folder}/README.md says more")
