"""`concertino completion`: the script that makes a shell complete commands, options and names."""

from __future__ import annotations

import click

from concertino.core.errors import UsageError

from .options import common_options
from .output import write_json
from .terminal import say

_FILES = {
    "bash": 'eval "$(concertino completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(concertino completion zsh)" in ~/.zshrc, after compinit',
    "fish": "concertino completion fish > ~/.config/fish/completions/concertino.fish",
}
_EXAMPLES = """\b
Examples:
  eval "$(concertino completion bash)"     in ~/.bashrc
  eval "$(concertino completion zsh)"      in ~/.zshrc, after compinit
  concertino completion fish > ~/.config/fish/completions/concertino.fish
"""


@click.command("completion", epilog=_EXAMPLES)
@click.argument("shell", metavar="[SHELL]", type=click.Choice(["bash", "zsh", "fish"]), required=False)
@common_options
def completion(shell: str | None, as_json: bool) -> None:
    """Print the script with which SHELL (bash, zsh or fish; by default your login shell) completes what you type.

    It completes commands, options and names.

    Names of members, models, strategies and rankings are those that earlier commands have seen; from now on each writes
    them into your cache. A key press imports no plugin's members, starts no program and asks no server.

    JSON: {"shell", "script", "install"}
    """
    from .seen import begin
    from .shells import script, shell_of_user

    chosen = shell or shell_of_user()
    if not chosen:
        raise UsageError("which shell? give one: concertino completion bash, zsh or fish")
    try:
        begin()
    except OSError as error:
        say(f"names will not be kept: {error.strerror}; set XDG_CACHE_HOME to a folder of yours", error=True)
    if as_json:
        write_json({"shell": chosen, "script": script(chosen), "install": _FILES[chosen]})
    else:
        say(script(chosen), nl=False)
