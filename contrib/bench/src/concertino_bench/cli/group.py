"""The group `concertino bench`: a table of commands, of which each is imported when it is used.

So `concertino bench --help` imports click alone: neither the parts of the bench nor the executor.
"""

from __future__ import annotations

from importlib import import_module

import click

_COMMANDS = {
    "run": ("run:run_command", "Run systems over tasks, and keep every outcome in a results file."),
    "report": ("report:report_command", "Make a report of results files; several are compared."),
    "compare": ("report:compare_command", "Compare systems, pair by pair, on the tasks that both have."),
    "pareto": ("report:pareto_command", "List the Pareto-optimal systems."),
    "study": ("study:study_command", "Run a study and draw its figures."),
    "generate": ("generate:generate_command", "Generate questions of a chosen size, with exact answers."),
    "verify": ("generate:verify_command", "Check every answer of a file of questions."),
    "synthesise": ("synthesise:synthesise_command", "Synthesise a domain with a database, tools and tasks."),
    "tasks": ("run:tasks_command", "List the task sets that are installed."),
    "graders": ("run:graders_command", "List the graders that are installed."),
}
"""By name: `module:attribute` in this package, and the line in `--help`."""


class BenchGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of `--help`."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, None if there is none."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"{__package__}.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing what it lists."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


@click.group("bench", cls=BenchGroup)
def bench() -> None:
    """Run systems over tasks, compare them, and look at the results."""
