"""The commands: a table of names, places and one-line helps; a command's module is imported when it is used.

So `concertino --help` costs an import of click and nothing else. A name that is not in the table is looked for among
the commands of plugins (hook `concertino_cli`), which imports every plugin; a built-in command always wins.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from .failures import report


class CommandPlace(NamedTuple):
    """Where a command is, as `module:attribute`, and its line in `--help`."""

    target: str
    help: str


_HERE = __package__
COMMANDS: dict[str, CommandPlace] = {
    "run": CommandPlace(f"{_HERE}.run:run", "Ask the orchestrator a question."),
    "call": CommandPlace(f"{_HERE}.call:call", "Call one tool or agent with JSON arguments."),
    "tools": CommandPlace(f"{_HERE}.members:tools", "List the tools of a pool, or show one."),
    "agents": CommandPlace(f"{_HERE}.members:agents", "List the agents of a pool, or show one."),
    "models": CommandPlace(f"{_HERE}.members:models", "List the models of a pool, or show one."),
    "pool": CommandPlace(f"{_HERE}.pool:pool", "Show, compare, save and lock pools."),
    "plugins": CommandPlace(f"{_HERE}.plugins:plugins", "List the installed plugins and their state."),
    "doctor": CommandPlace(f"{_HERE}.plugins:doctor", "Look for what is wrong with this installation."),
    "traces": CommandPlace(f"{_HERE}.traces:traces", "List, show, follow, replay and export recorded runs."),
    "check": CommandPlace(f"{_HERE}.check:check", "Check a plugin's package against the conformance kit."),
    "new": CommandPlace(f"{_HERE}.new:new", "Write the skeleton of a plugin."),
    "demo": CommandPlace(f"{_HERE}.demo:demo", "Watch a run with simulated models: no key, no network."),
    "version": CommandPlace(f"{_HERE}.version:version", "Print the versions of concertino and Python."),
}
"""The built-in commands, in the order of `--help`."""
_OF_PLUGINS = {
    "bench": "concertino-bench",
    "train": "concertino-train",
    "probe": "concertino-openai",
    "mcp": "concertino-mcp",
    "search-index": "concertino-search",
}
"""Commands of our other distributions, which need not be installed."""


class CommandGroup(click.Group):
    """A group whose commands are imported when they are used.

    Args:
        places: of the commands, by name.
        plugins: whether plugins may add commands.
    """

    def __init__(self, *args: Any, places: Mapping[str, CommandPlace], plugins: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self._places = dict(places)
        self._plugins = plugins

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The built-in commands; those of plugins are not known without importing plugins."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, None if there is none."""
        place = self._places.get(cmd_name)
        if place is not None:
            module, _, attribute = place.target.partition(":")
            found: click.Command = getattr(import_module(module), attribute)
            return found
        return plugin_command(cmd_name) if self._plugins else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with near names for an unknown command."""
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        from concertino.schema import suggestion

        # Looking for the name has loaded all plugins, so the names of their commands cost nothing more.
        of_plugins = [str(command.name) for command in plugin_commands()] if self._plugins else []
        source = _OF_PLUGINS.get(name) if self._plugins else None
        known = [*self._places, *of_plugins]
        hint = f"it comes with {source}: pip install {source}" if source else suggestion(name, known)
        raise click.UsageError(f"there is no command {name!r}; {hint}{_broken_plugins() if self._plugins else ''}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.help) for name, place in self._places.items()])

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, and turn what goes wrong into a message and an exit code."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        given = list(args[0] if args else options.pop("args", None) or sys.argv[1:])
        # click would print errors its own way and exit; here they become JSON or our own exit codes.
        options["standalone_mode"] = False
        options["prog_name"] = self.name
        try:
            code = super().main(given, *args[1:], **options)
        except Exception as error:
            sys.exit(report(error, given))
        sys.exit(code if isinstance(code, int) else 0)


def plugin_commands() -> list[click.Command]:
    """The commands of all plugins, which are loaded for it."""
    from concertino.plugins import default_manager

    return default_manager().commands()


def plugin_command(name: str) -> click.Command | None:
    """The command of a plugin, None if there is none of this name."""
    return next((command for command in plugin_commands() if command.name == name), None)


def _broken_plugins() -> str:
    """A hint for a command whose plugin cannot be used."""
    from concertino.plugins import default_manager

    broken = [f"{row.name} ({row.reason})" for row in default_manager().plugins() if row.state in ("failed", "clash")]
    return f"; broken plugins, whose commands are missing: {', '.join(broken)}" if broken else ""


@click.group(
    "concertino",
    cls=CommandGroup,
    places=COMMANDS,
    plugins=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        f"Plugins add commands: {', '.join(f'{name} ({source})' for name, source in _OF_PLUGINS.items())}. "
        "`concertino plugins --load` lists the installed ones. "
        "Every command takes --json and --debug."
    ),
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.version_option(package_name="concertino", message="%(prog)s %(version)s")
@click.pass_context
def command_line(ctx: click.Context) -> None:
    """One orchestrator leads a pool of agents, tools and models from any installed package."""
    from .log import level_of_environment, log_to_stderr

    log_to_stderr(ctx, level_of_environment())
