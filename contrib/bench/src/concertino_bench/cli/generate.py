"""`concertino bench`: write generated questions to a file, and check the answers of a file."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from concertino.cli.options import common_options
from concertino.cli.output import write_json
from concertino.cli.terminal import progress_bar, say, say_json, say_json_text

from concertino_bench.masbench.checking import AnswerCheck, check
from concertino_bench.masbench.generator import AXES, LEVELS, SPLITS, Axis, Split, generate
from concertino_bench.masbench.rows import RowError, read_jsonl, write_jsonl
from concertino_bench.tasks.task import Task


@click.command("generate")
@click.option("--axis", type=click.Choice(AXES), required=True, help="What is varied.")
@click.option(
    "--level", type=click.IntRange(LEVELS[0], LEVELS[-1]), default=4, show_default=True, help="How much of it."
)
@click.option("--count", type=click.IntRange(min=1), default=100, show_default=True, help="How many questions.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, other questions.")
@click.option(
    "--split", type=click.Choice(SPLITS), default="test", show_default=True, help="The two share no template."
)
@click.option(
    "--start",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Index of the first question, to continue a set.",
)
@click.option("--bare", is_flag=True, help="Leave out the rules of the arithmetic, as the published rows do.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    default="-",
    metavar="FILE",
    help="JSON Lines; written whole or not at all. By default stdout.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON; needs --out.")
def generate_command(
    axis: Axis, level: int, count: int, seed: int, split: Split, start: int, bare: bool, out: str, as_json: bool
) -> None:
    """Generate questions whose dependency graph has a chosen size, with their exact answers.

    The same options give the same bytes, on any machine.

    JSON: {"file", "axis", "level", "count", "seed", "split", "start", "templates", "bytes", "sha256", "seconds"}
    """
    if as_json and out == "-":
        raise click.UsageError("--json prints a summary on stdout, where the rows would go too; add --out FILE")
    started = time.monotonic()
    templates: set[str] = set()
    tasks = generate(axis, level, count, seed=seed, split=split, rules=not bare, start=start)
    noted = _noting(tasks, templates)
    with _progress(noted, count) as shown:
        if out == "-":
            for line in write_jsonl(shown):
                say_json_text(line, nl=False)
            return
        size, digest = _write(Path(out), write_jsonl(shown))
    summary = {
        "file": out,
        "axis": axis,
        "level": level,
        "count": count,
        "seed": seed,
        "split": split,
        "start": start,
        "templates": len(templates),
        "bytes": size,
        "sha256": digest,
        "seconds": round(time.monotonic() - started, 3),
    }
    if as_json:
        say_json(summary)
    else:
        say(f"{count} questions, {axis} {level}, {len(templates)} templates: {out}")


@click.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@common_options
def verify_command(file: str, as_json: bool) -> None:
    """Work out every answer of a JSON Lines FILE of rows again, from the text alone, and compare.

    Rows may be generated here or published. Ends with status 1 if an answer differs or a text cannot be read.

    JSON: {"rows", "agreed", "groups": [{"axis", "level", "rows", "agreed"}], "differences": [{"id", "kind", "detail"}]}
    """
    try:
        report = check(read_jsonl(file))
    except RowError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        write_json(report.to_json())
    else:
        _show(report)
    if report.differences:
        sys.exit(1)


def _show(report: AnswerCheck) -> None:
    for (axis, level), (rows, agreed) in sorted(report.groups.items(), key=lambda item: (item[0][0], item[0][1] or 0)):
        say(f"{axis or '-':<10}  {level if level is not None else '-':>5}  {agreed} of {rows}")
    say(f"{report.agreed} of {report.rows} answers agree")
    for difference in report.differences[:20]:
        say(f"{difference.id}: {difference.kind}: {difference.detail}")
    if len(report.differences) > 20:
        say(f"and {len(report.differences) - 20} more; --json lists all")


def _noting(tasks: Iterable[Task], templates: set[str]) -> Iterator[Task]:
    for task in tasks:
        # Noted while they pass, because a million tasks are not kept in memory.
        templates.update(task.metadata["templates"])
        yield task


@contextmanager
def _progress(tasks: Iterator[Task], count: int) -> Iterator[Iterable[Task]]:
    """A bar on stderr where somebody looks at it."""
    if not sys.stderr.isatty():
        yield tasks
        return
    with progress_bar(tasks, count, "questions") as bar:
        yield bar


def _write(path: Path, lines: Iterable[str]) -> tuple[int, str]:
    """Write a file whole or not at all; its size in bytes and its SHA-256."""
    digest, size = hashlib.sha256(), 0
    # Next to the file, since a move is only whole within one file system.
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            for line in lines:
                data = line.encode()
                digest.update(data)
                size += file.write(data)
        beside.replace(path)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # on a read-only disk, even what is not there cannot be removed
            beside.unlink(missing_ok=True)
    return size, digest.hexdigest()
