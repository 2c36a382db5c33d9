"""Processes of Python that are started in a hostile folder import nothing from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from concertino.core import child_python
from concertino.plugins.import_time import import_seconds

NAMES = ("asyncio", "json", "sitecustomize", "usercustomize", "runpy", "typing", "concertino", "pydantic", "site", "os")
PROGRAM = """
import asyncio
from concertino import Call, Executor, Pool, tool
from {module} import double

async def main():
    async with Executor() as executor:
        print((await executor.run([Call("double", {{"number": 21}})], Pool.of(double)))[0].content)

asyncio.run(main())
"""
MODULE = """
from concertino import tool

@tool(isolation="process")
def double(number: int) -> int:
    "Double a number."
    return 2 * number
"""


@pytest.fixture(autouse=True)
def traps(clone: Path, tmp_path: Path) -> Path:
    """Modules that leave a mark where they are imported; the file of the mark."""
    mark = tmp_path / "mark"
    for name in NAMES:
        (clone / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})")
    return mark


def run(*command: str, **environment: str) -> str:
    """What a program prints, in the hostile folder."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_worker_process_imports_nothing_of_the_working_folder(tmp_path: Path, traps: Path) -> None:
    (tmp_path / "outside" / "own_tools.py").write_text(MODULE)
    (tmp_path / "outside" / "program.py").write_text(PROGRAM.format(module="own_tools"))
    assert run(sys.executable, str(tmp_path / "outside" / "program.py")) == "42"
    assert not traps.exists()


def test_a_module_of_the_working_folder_that_is_meant_is_found(clone: Path, tmp_path: Path, traps: Path) -> None:
    (clone / "own_tools.py").write_text(MODULE)
    path = f"import sys; sys.path.append({str(clone)!r})\n"
    (tmp_path / "outside" / "program.py").write_text(path + PROGRAM.format(module="own_tools"))
    assert run(sys.executable, str(tmp_path / "outside" / "program.py")) == "42"
    assert not traps.exists()


@pytest.mark.parametrize("first", ["", "."])
def test_the_library_comes_first_even_where_the_path_begins_with_the_working_folder(
    clone: Path, traps: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    (clone / "concertino.py").unlink()
    monkeypatch.setattr(sys, "path", [first, *sys.path])
    code = "import asyncio, json, typing, runpy; print(json.__file__)"
    assert str(clone) not in run(*child_python.code_command(code))
    assert not traps.exists()
    assert str(clone) in child_python.child_path()


def test_an_empty_entry_of_the_environment_s_path_is_no_working_folder_for_a_child(traps: Path) -> None:
    command = child_python.code_command("import json, asyncio; print('done')")
    environment = child_python.safe_environment({**os.environ, "PYTHONPATH": f"{os.pathsep}/x"})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "done\n"
    assert not traps.exists()


def test_measuring_an_import_imports_nothing_of_the_working_folder(traps: Path) -> None:
    assert import_seconds("wave") is not None
    assert not traps.exists()


def test_python_m_concertino_imports_nothing_of_the_working_folder_but_what_python_does_itself(
    clone: Path, traps: Path
) -> None:
    for name in ("concertino", "runpy", "os", "site", "sitecustomize", "usercustomize", "typing"):
        (clone / f"{name}.py").unlink()
    assert "concertino" in run(sys.executable, "-m", "concertino", "version")
    assert not traps.exists()
