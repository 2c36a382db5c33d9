"""The commands: a table of names, places and one-line helps; a command's module is imported when it is used.

So `concertino --help` costs an import of click and nothing else. A command of a plugin has its name in the metadata of
its distribution, in the group `concertino.commands`; only that distribution is imported for it, to ask the hook
`concertino_cli`. A built-in command always wins. A key press for completion imports none.

Invariant: a list, a help or an unknown name imports no plugin, makes no member and obeys no file of the working folder.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from concertino.core.trust import guarding

from .failures import report
from .process import readable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from click.shell_completion import CompletionItem

    from concertino.plugins import PluginManager


class CommandPlace(NamedTuple):
    """Where a command is, as `module:attribute`, and its line in `--help`."""

    target: str
    help: str


_HERE = __package__
COMMANDS: dict[str, CommandPlace] = {
    "run": CommandPlace(f"{_HERE}.run:run", "Ask the orchestrator a question."),
    "init": CommandPlace(f"{_HERE}.init:init", "Write a pool file and a program, for what there is."),
    "call": CommandPlace(f"{_HERE}.call:call", "Call one tool or agent with JSON arguments."),
    "tools": CommandPlace(f"{_HERE}.members:tools", "List the tools of a pool, or show one."),
    "agents": CommandPlace(f"{_HERE}.members:agents", "List the agents of a pool, or show one."),
    "models": CommandPlace(f"{_HERE}.members:models", "List the models of a pool, or show one."),
    "pool": CommandPlace(f"{_HERE}.pool:pool", "Show, compare, save and lock pools."),
    "plugins": CommandPlace(f"{_HERE}.plugins:plugins", "List the installed plugins and their state."),
    "doctor": CommandPlace(f"{_HERE}.plugins:doctor", "Look for what is wrong with this installation."),
    "traces": CommandPlace(f"{_HERE}.traces:traces", "List, show, follow, replay and export recorded runs."),
    "sessions": CommandPlace(f"{_HERE}.sessions:sessions", "List, show, fork and delete conversations."),
    "check": CommandPlace(f"{_HERE}.check:check", "Check a plugin's package against the conformance kit."),
    "trust": CommandPlace(
        f"{_HERE}.trust:trust", "Trust a settings file, pool file or recipe, or list what is trusted."
    ),
    "new": CommandPlace(f"{_HERE}.new:new", "Write the skeleton of a plugin."),
    "demo": CommandPlace(f"{_HERE}.demo:demo", "Watch a run with simulated models: no key, no network."),
    "completion": CommandPlace(f"{_HERE}.completion:completion", "Print the shell's script that completes names."),
    "version": CommandPlace(f"{_HERE}.version:version", "Print the versions of concertino and Python."),
}
"""The built-in commands, in the order of `--help`."""


class PluginCommand(NamedTuple):
    """A command of another distribution of ours, and its line in `--help`."""

    distribution: str
    help: str

    @property
    def module(self) -> str:
        """Where its hooks are."""
        return self.distribution.replace("-", "_")

    @property
    def extra(self) -> str:
        """What brings it: `pip install 'concertino[bench]'`."""
        return f"pip install 'concertino[{self.distribution.removeprefix('concertino-')}]'"

    def installed(self) -> bool:
        """Whether its distribution is there. Imports nothing."""
        from importlib.util import find_spec

        return find_spec(self.module) is not None


OF_PLUGINS: dict[str, PluginCommand] = {
    "bench": PluginCommand("concertino-bench", "Run systems over tasks, compare them, and look at the results."),
    "train": PluginCommand("concertino-train", "Train an orchestrator: collect, sft, rl, eval, export."),
    "view": PluginCommand("concertino-view", "Look at the runs in a browser."),
    "serve": PluginCommand("concertino-serve", "Serve pools to clients of the OpenAI API."),
    "probe": PluginCommand("concertino-openai", "Find out what the model server at URL really does."),
    "mcp": PluginCommand("concertino-mcp", "The MCP servers of concertino.toml: what they offer, and single calls."),
    "search-index": PluginCommand("concertino-search", "Build the index of CORPUS."),
}
"""Commands of our other distributions, which need not be installed."""


_IN_GROUPS = {
    "pool describe": "concertino-bench",
    "traces export --otlp": "concertino-otel",
    "traces html": "concertino-view",
}
"""Commands of our other distributions that belong to a built-in group or command."""
COMMAND_GROUP = "concertino.commands"
"""The group of entry points whose names are commands of plugins."""
_MOST_ASKED = 20
"""Files that one command may ask about."""


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
        if not self._plugins:
            return None
        return quick_command(cmd_name) if ctx.resilient_parsing else plugin_command(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with near names for an unknown command."""
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        from concertino.schema import suggestion

        known = list(self._places)
        if not self._plugins or ctx.resilient_parsing:
            raise click.UsageError(f"there is no command {name!r}; {suggestion(name, known)}", ctx)
        known += [*_installed_commands(), *_foreign_commands()]
        ours = OF_PLUGINS.get(name)
        hint = f"it comes with {ours.distribution}: {ours.extra}" if ours else suggestion(name, known)
        raise click.UsageError(f"there is no command {name!r}; {hint}{_broken_plugins(name)}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.help) for name, place in self._places.items()])
        if self._plugins and (rows := [*{**_installed_commands(), **_foreign_commands()}.items()]):
            with formatter.section("Commands of plugins"):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What is not installed, and what all commands take."""
        if self._plugins:
            self.epilog = f"{_missing_commands()}Every command takes --json and --debug."
        super().format_epilog(ctx, formatter)

    def get_help(self, ctx: click.Context) -> str:
        """The help; commands of plugins have lines of strangers in it."""
        from concertino.core.display_text import clean

        return clean(super().get_help(ctx))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of commands, without importing them, and of options."""
        from click.shell_completion import CompletionItem

        named = [(name, place.help) for name, place in self._places.items()]
        if self._plugins:
            from .complete import commands_seen

            named += [*_installed_commands().items(), *((name, data["help"]) for name, data in commands_seen().items())]
        items = [CompletionItem(name, help=text) for name, text in dict(named).items() if name.startswith(incomplete)]
        # Not the group's own way, which imports every command.
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, and turn what goes wrong into a message and an exit code."""
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        words = args[0] if args else options.pop("args", None)
        given = sys.argv[1:] if words is None else list(words)
        # click would print errors its own way and exit; here they become JSON or our own exit codes.
        options["standalone_mode"] = False
        options["prog_name"] = self.name
        completing = "_CONCERTINO_COMPLETE" in os.environ  # as click calls it
        try:
            if completing:
                from . import shells  # noqa: F401 (click finds them by the variable)
            code = self._trusting(readable(given), *args[1:], **options)
        except Exception as error:
            sys.exit(0 if completing else report(error, given))  # a key press has no place for an error
        finally:
            if not completing:
                from .seen import remember

                remember()
        sys.exit(code if isinstance(code, int) else 0)

    def _trusting(self, given: list[str], *args: Any, **options: Any) -> Any:
        """Run; where a file is not trusted and a person can be asked, ask, and run again."""
        with guarding():
            for _ in range(_MOST_ASKED):
                try:
                    return super().main(list(given), *args, **options)
                except Exception as error:
                    from .trust import allowed, refusal

                    # A command may have told the refusal in words of its own, which lose what it is about.
                    refused = refusal(error)
                    if refused is None:
                        raise
                    if not allowed(refused, given):
                        raise refused from None
            return super().main(list(given), *args, **options)


class OpenGroup(click.Group):
    """A built-in group with commands of plugins beside its own: `pool describe`; a built-in command always wins."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, None if there is none."""
        return super().get_command(ctx, cmd_name) or plugin_command(f"{self.name} {cmd_name}")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it; of a command of ours that is not installed, it says where it comes from."""
        distribution = _IN_GROUPS.get(f"{self.name} {args[0]}")
        if distribution is not None and self.get_command(ctx, args[0]) is None:
            extra = PluginCommand(distribution, "").extra
            raise click.UsageError(f"there is no command {args[0]!r}; it comes with {distribution}: {extra}", ctx)
        return super().resolve_command(ctx, args)


def plugin_command(name: str) -> click.Command | None:
    """The command of a plugin, None if there is none of this name. Imports the distribution that has it, if one has."""
    from concertino.core.trust import UntrustedFile
    from concertino.plugins import PluginManager, default_manager

    if not (distributions := _distributions_of(name)):
        return None
    try:
        manager = default_manager()
    except UntrustedFile:
        # Its help may be read everywhere; what it does asks for the settings itself.
        manager = _manager_without_settings(PluginManager)
    # What a program has registered has no distribution, and is loaded already.
    providers = {row.name for row in manager.plugins() if _normal(row.distribution) in distributions | {""}}
    return next((command for command in manager.commands(providers) if command.name == name), None)


@functools.cache
def _manager_without_settings(kind: type[PluginManager]) -> PluginManager:
    from concertino.core.settings import settings_of_environment

    return kind(settings_of_environment())


def part_of_plugin(name: str) -> click.Command:
    """What an option of a built-in command leaves to another distribution of ours.

    Raises:
        UsageError: it is not installed, or is broken.
    """
    found = plugin_command(name)
    if found is None:
        from concertino.core.errors import UsageError

        ours = PluginCommand(_IN_GROUPS[name], "")
        raise UsageError(f"'{name}' comes with {ours.distribution}: {ours.extra}{_broken_plugins(name)}")
    return found


def _distributions_of(name: str) -> set[str]:
    """The distributions whose metadata name a command. Imports nothing."""
    found = {_normal(entry.dist.name) for entry in _declared_commands() if entry.name == name and entry.dist}
    ours = OF_PLUGINS.get(name)
    return found | {ours.distribution if ours is not None else _IN_GROUPS.get(name, "")} - {""}


def _declared_commands() -> list[EntryPoint]:
    """The commands that metadata name."""
    from importlib.metadata import entry_points

    with suppress(Exception):  # importlib.metadata raises any exception on damaged metadata
        return list(entry_points(group=COMMAND_GROUP))
    return []


def _normal(distribution: str) -> str:
    """A name of a distribution as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _broken_plugins(name: str) -> str:
    """A hint for a command whose plugin was looked at and cannot be used."""
    if not (distributions := _distributions_of(name)):
        return ""
    from concertino.core.errors import ConcertinoError
    from concertino.plugins import default_manager

    with suppress(ConcertinoError):
        rows = [row for row in default_manager().plugins() if _normal(row.distribution) in distributions]
        broken = [f"{row.name} ({row.reason})" for row in rows if row.state in ("failed", "clash", "disabled")]
        return f"; its plugin cannot be used: {', '.join(broken)}" if broken else ""
    return ""


def quick_command(name: str) -> click.Command | None:
    """The command of a plugin, for completion: as it was seen, without importing the plugin."""
    from .command_tree import command_of
    from .complete import commands_seen

    found = commands_seen().get(name)
    return command_of(name, found) if found else None


def _installed_commands() -> dict[str, str]:
    """The commands of our other distributions that are installed, with their helps. Imports none of them."""
    return {name: command.help for name, command in OF_PLUGINS.items() if command.installed()}


def _foreign_commands() -> dict[str, str]:
    """The commands of other plugins, as metadata name them, with where they are from. Imports none of them."""
    found = {entry.name: f"Of {entry.dist.name}." for entry in _declared_commands() if entry.dist}
    return {name: text for name, text in found.items() if " " not in name and name not in OF_PLUGINS}


def _missing_commands() -> str:
    """What else there could be, as a sentence."""
    missing = [f"{name} ({command.extra})" for name, command in OF_PLUGINS.items() if not command.installed()]
    return f"Not installed: {', '.join(missing)}. " if missing else ""


@click.group(
    "concertino",
    cls=CommandGroup,
    places=COMMANDS,
    plugins=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--config",
    "settings_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    help="A settings file that you trust, instead of ./concertino.toml.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.version_option(package_name="concertino", message="%(prog)s %(version)s")
@click.pass_context
def command_line(ctx: click.Context, settings_file: str | None) -> None:
    """One orchestrator leads a pool of agents, tools and models from any installed package."""
    if settings_file is not None:
        _choose_settings(ctx, settings_file)
    from .log import level_of_environment, log_to_stderr

    log_to_stderr(ctx, level_of_environment())


def _choose_settings(ctx: click.Context, file: str) -> None:
    """Use a settings file for this command, and for the processes that it starts."""
    before = os.environ.get("CONCERTINO_CONFIG")

    def restore() -> None:
        if before is None:
            os.environ.pop("CONCERTINO_CONFIG", None)
        else:
            os.environ["CONCERTINO_CONFIG"] = before

    os.environ["CONCERTINO_CONFIG"] = file
    ctx.call_on_close(restore)
