"""Importing the distribution is light, and every public name of its packages is there."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import concertino_bench
import pytest

LIGHT = {
    "concertino_bench.examples",
    "concertino_bench.tasks",
    *(f"concertino_bench.tasks.{m}" for m in ("task", "grade", "item", "system", "installed")),
}
PACKAGES = [
    "concertino_bench",
    # The names of `tasks` are those of the root.
    *(f"concertino_bench.{each.name}" for each in iter_modules(concertino_bench.__path__) if each.name != "tasks"),
]
HEAVY = "('numpy', 'matplotlib', 'jinja2', 'pyarrow', 'sympy', 'math_verify', 'concertino.executor')"


def _run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_the_distribution_imports_the_shared_names_alone() -> None:
    _run(
        "import sys, concertino_bench\n"
        "loaded = {name for name in sys.modules if name.startswith('concertino_bench.')}\n"
        f"assert loaded == {LIGHT!r}, loaded\n"
        f"assert not {{'click', *{HEAVY}}} & set(sys.modules)\n"
    )


def test_the_help_of_the_group_imports_no_command() -> None:
    _run(
        "import sys\n"
        "from concertino_bench.cli import bench\n"
        "bench(['--help'], standalone_mode=False)\n"
        f"loaded = {{name for name in sys.modules if name.startswith('concertino_bench.')}} - {LIGHT!r}\n"
        "assert loaded == {'concertino_bench.cli', 'concertino_bench.cli.group'}, loaded\n"
        f"assert not set({HEAVY}) & set(sys.modules)\n"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package: str) -> None:
    module = import_module(package)
    assert module.__all__, package
    for name in module.__all__:
        assert getattr(module, name) is not None
