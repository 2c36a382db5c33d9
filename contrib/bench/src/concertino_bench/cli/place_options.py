"""Options of commands that make many runs: where these happen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def place_options(function: F) -> F:
    """Add `--on` and `--env` (as `env_from`) to a command."""
    on = click.option(
        "--on",
        default="local",
        show_default=True,
        metavar="PLACE",
        help="Where the runs happen: local, in this process; local:4, in four worker processes; ray or "
        "ray://HOST:PORT, on a Ray cluster, with concertino-ray.",
    )
    env_from = click.option(
        "--env",
        "env_from",
        multiple=True,
        metavar="NAME",
        help="Environment variable that worker processes are given, such as OPENAI_API_KEY; may be repeated.",
    )
    return on(env_from(function))
