"""`concertino train recipes`: the included settings files."""

from __future__ import annotations

import click
from concertino.cli.terminal import say

from .options import common_options
from .settings import write, write_json


@click.command("recipes")
@click.argument("name", required=False)
@common_options
def recipes_command(name: str | None, as_json: bool) -> None:
    """List the recipes, or print the settings file of one.

    `paper` has the values of a system's paper, `toy` learns in minutes on two CPU cores.

    JSON: [{"name", "about"}], or {"name", "text", "config"} of one
    """
    from concertino_train.config.config import load_config
    from concertino_train.config.reading import recipe_names, recipe_text

    if name is not None:
        text = recipe_text(name)
        if as_json:
            write_json({"name": name, "text": text, "config": load_config(name).resolved()})
        else:
            say(text, nl=False)
        return
    rows = [{"name": each, "about": load_config(each).about} for each in recipe_names()]
    if as_json:
        write_json(rows)
        return
    width = max(len(row["name"]) for row in rows)
    write(*(f"{row['name']:<{width}}  {row['about']}" for row in rows))
