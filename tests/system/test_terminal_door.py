"""Nothing is written to a terminal but through the door `concertino.cli.terminal`.

The source of every distribution is read. What may write elsewhere is listed with its reason; a line of the list that
holds no longer fails the test too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from import_graph import distributions
from tree import ROOT

DOOR = "sdk/concertino/cli/terminal.py"

ELSEWHERE = {
    "sdk/concertino/cli/__init__.py": "says `cancelled` before anything could be imported",
    "sdk/concertino/cli/process.py": "puts the guarded streams in the place of those of Python",
    "sdk/concertino/core/html.py": "shows a value in a notebook or a Python shell; the text is clean",
    "contrib/train/src/concertino_train/running/progress.py": "a bar of tqdm; its texts are clean",
    "providers/code/src/concertino_code/jail/worker.py": "a program in the sandbox, whose output is read",
    "providers/code/src/concertino_code/sandbox/runner.py": "a program in the sandbox, whose output is read",
    "contrib/bench/src/concertino_bench/graders/sandbox_program.py": "a program in the sandbox, whose output is read",
    "contrib/bench/src/concertino_bench/graders/sandbox_streams.py": "a program in the sandbox, whose output is read",
    "contrib/bench/src/concertino_bench/graders/math_worker.py": "a program of its own, whose output is read",
    "contrib/bench/src/concertino_bench/toolscale/sandbox_program.py": "a program in the sandbox, whose output is read",
}
"""Modules that write past the door, and why they may."""

NAMES = {"print", "echo", "secho", "echo_via_pager", "progressbar", "confirm", "prompt", "input", "getpass", "tqdm"}
"""Functions that write to a terminal, or ask there."""
LIBRARIES = ("click", "rich", "rich.console", "getpass", "tqdm", "logging", "traceback", "warnings")
CLASSES = {"Console", "StreamHandler", "RichHandler"}


def writes(source: str) -> Iterator[tuple[int, str]]:
    """Where a module writes to a stream of the process: line and what stands there."""
    tree = ast.parse(source)
    of_door = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] == "terminal"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            plain = isinstance(called, ast.Name) and name not in of_door
            of_library = isinstance(called, ast.Attribute) and ast.unparse(called.value) in LIBRARIES
            if (plain or of_library) and (name in NAMES | CLASSES or name.startswith("print_")):
                yield node.lineno, ast.unparse(called)
            elif isinstance(called, ast.Attribute) and name == "show" and ast.unparse(called.value) == "error":
                yield node.lineno, "error.show"
        elif isinstance(node, ast.Attribute) and node.attr in ("write", "writelines", "buffer"):
            if ast.unparse(node.value) in ("sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Assign):
            yield from (
                (node.lineno, ast.unparse(target))
                for target in node.targets
                if ast.unparse(target) in ("sys.stdout", "sys.stderr")
            )


def found() -> dict[str, list[str]]:
    """What every module writes past the door, by its path."""
    files = {file for imports in distributions().values() for file in imports.files.values()}
    places: dict[str, list[str]] = {}
    for file in sorted(files):
        name = file.relative_to(ROOT).as_posix()
        seen = [f"{line}: {what}" for line, what in writes(file.read_text(encoding="utf-8"))] if name != DOOR else []
        if seen:
            places[name] = seen
    return places


def test_no_module_writes_to_a_terminal_past_the_door() -> None:
    assert {name: seen for name, seen in found().items() if name not in ELSEWHERE} == {}


def test_every_exception_is_still_one() -> None:
    assert sorted(ELSEWHERE.keys() - found().keys()) == []


@pytest.mark.parametrize(
    "line",
    [
        "print('x')",
        "import click\nclick.echo('x')",
        "import click\nclick.secho('x')",
        "from click import echo\necho('x')",
        "import click\nclick.confirm('x')",
        "import click\nclick.prompt('x')",
        "import click\nclick.progressbar([])",
        "import sys\nsys.stdout.write('x')",
        "import sys\nsys.stderr.writelines(['x'])",
        "import sys\nsys.stdout.buffer.write(b'x')",
        "import sys\nsys.stdout = 1",
        "from rich.console import Console\nConsole()",
        "import rich.console\nrich.console.Console()",
        "import traceback\ntraceback.print_exc()",
        "import logging\nlogging.StreamHandler()",
        "from tqdm import tqdm\ntqdm([])",
        "input('x')",
        "error.show()",
    ],
)
def test_a_way_past_the_door_is_seen(line: str) -> None:
    assert list(writes(line))


def test_the_door_itself_may_be_used() -> None:
    assert list(writes("from concertino.cli.terminal import confirm, say\nsay('x')\nconfirm('x')")) == []
