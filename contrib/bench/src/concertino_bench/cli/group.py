"""The group `concertino bench`: a table of commands, of which each is imported when it is used."""

from __future__ import annotations

import click
from concertino.cli import CommandGroup
from concertino.cli.group import CommandPlace

_HERE = __package__
COMMANDS = {
    "run": CommandPlace(
        f"{_HERE}.run:run_command", "Run systems over tasks, and keep every outcome in a results file."
    ),
    "report": CommandPlace(f"{_HERE}.report:report_command", "Make a report of results files; several are compared."),
    "compare": CommandPlace(
        f"{_HERE}.report:compare_command", "Compare systems, pair by pair, on the tasks that both have."
    ),
    "pareto": CommandPlace(f"{_HERE}.report:pareto_command", "List the Pareto-optimal systems."),
    "rescore": CommandPlace(f"{_HERE}.rescore:rescore_command", "Rescore old results, without asking anybody."),
    "study": CommandPlace(f"{_HERE}.study:study_command", "Run a study and draw its figures."),
    "paper": CommandPlace(f"{_HERE}.paper:paper_command", "Repeat a table of a paper, beside its published numbers."),
    "generate": CommandPlace(
        f"{_HERE}.generate:generate_command", "Generate questions of a chosen size, with exact answers."
    ),
    "verify": CommandPlace(f"{_HERE}.generate:verify_command", "Check every answer of a file of questions."),
    "synthesise": CommandPlace(
        f"{_HERE}.synthesise:synthesise_command", "Synthesise a domain with a database, tools and tasks."
    ),
    "tasks": CommandPlace(f"{_HERE}.run:tasks_command", "List the task sets that are installed."),
    "graders": CommandPlace(f"{_HERE}.run:graders_command", "List the graders that are installed."),
}
"""In the order of `--help`."""


@click.group("bench", cls=CommandGroup, places=COMMANDS, subcommand_metavar="COMMAND [ARGS]...")
def bench() -> None:
    """Run systems over tasks, compare them, and look at the results."""
