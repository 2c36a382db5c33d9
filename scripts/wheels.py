"""Build every distribution of the tree, install the wheels alone, and try them, as a user gets them.

    python scripts/wheels.py [build | test [arguments of pytest]]

Source and wheel differ in exactly the ways that hurt users: a module or data file missing from the wheel, an entry
point, an undeclared dependency. So an sdist of each distribution is built, a wheel *from that sdist*, and a fresh
virtual environment with only the wheels. There every file of the source is in its wheel, every package is imported, and
the demo asks its question. With `test`, the tests of `make test` run there too. `build` only builds.

The invariant: no distribution under test is imported from the tree. It is checked by `__file__`, not assumed. All is
built in a temporary folder; `dist/` is replaced only when everything was built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from environment import PIP, SetupFailed, create, exclusive, pip
from suite import SUITES
from tree import ROOT, Member, members, sdk, tree_files

DIST = ROOT / "dist"

# Imports each distribution with every package in it, and prints from which file each came.
WHENCE = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    root = importlib.import_module(name)
    below = [each.name for each in pkgutil.walk_packages(root.__path__, name + ".") if each.ispkg]
    for module in [root, *map(importlib.import_module, below)]:
        print(module.__name__, module.__file__)
"""


def main() -> None:
    """Build, install, check, try; exit with the status of the tests, or with what is wrong."""
    words = sys.argv[1:]
    if words and words[0] not in ("build", "test"):
        sys.exit(f"unknown word {words[0]!r}; expected nothing, build, or test with arguments of pytest")
    with exclusive("wheels"), tempfile.TemporaryDirectory(prefix="concertino-wheels-") as temporary:
        distributions = [sdk(), *members()]
        build(distributions, Path(temporary) / "dist")
        refuse_gaps(distributions)
        if words == ["build"]:
            return
        venv = Path(temporary) / "venv"
        try:
            _install(venv, distributions, ["--group", "test", "--group", "servers"] if words else [])
        except SetupFailed as failure:
            sys.exit(str(failure))
        _refuse_source(venv, distributions)
        demo = subprocess.run(_python(venv, "-m", "concertino", "demo"), cwd=temporary, check=False)
        if demo.returncode or not words:
            sys.exit(demo.returncode)
        select = ["-p", "no:cacheprovider", "-m", SUITES["test"]]
        sys.exit(subprocess.call(_python(venv, "-m", "pytest", *select, *words[1:]), cwd=ROOT))


def refuse_gaps(distributions: list[Member]) -> None:
    """Exit when a file of a source tree is not in its wheel."""
    files = tree_files()
    missing = []
    for member in distributions:
        folder = member.path / ("sdk" if member.path == ROOT else "src")
        with zipfile.ZipFile(wheel_of(member)) as wheel:
            packed = set(wheel.namelist())
        wanted = [file.relative_to(folder).as_posix() for file in files if file.is_relative_to(folder)]
        missing += [f"{member.relative}: {name}" for name in wanted if name not in packed]
    if missing:
        sys.exit("\n".join(["These files of the source are not in the wheels:", *missing]))


def build(distributions: list[Member], out: Path) -> None:
    """Build every sdist, and the wheel from it, in `out`; then replace `dist/`. Exits where a build fails."""
    print(f"Building {len(distributions)} distributions ...", flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = list(pool.map(lambda member: _build_one(member, out), distributions))
    if any(errors):
        sys.exit("\n".join(filter(None, errors)) + "\nNot built, for the errors above; dist/ is as it was.")
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.copytree(out, DIST)


def _build_one(member: Member, out: Path) -> str:
    """Build the sdist, and the wheel from it. Returns what a failed build printed, else nothing."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(member.path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return f"{member.relative}:\n{done.stdout}{done.stderr}" if done.returncode else ""


def _install(venv: Path, distributions: list[Member], groups: list[str]) -> None:
    print("Installing the wheels into a fresh environment ...", flush=True)
    create(venv)
    pip(venv, "install", PIP)
    wheels = [str(wheel_of(member)) for member in distributions]
    pip(venv, "install", "--no-compile", *groups, *wheels)  # most of what they bring is never imported here


def wheel_of(member: Member) -> Path:
    """The wheel of a distribution in `dist/`."""
    (wheel,) = DIST.glob(f"{member.import_name}-{member.pyproject['project']['version']}-*.whl")
    return wheel


def _refuse_source(venv: Path, distributions: list[Member]) -> None:
    """Exit when a package under test is imported from anywhere but the fresh environment."""
    command = _python(venv, "-c", WHENCE, *(member.import_name for member in distributions))
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit("A wheel cannot be imported; the error is above.")
    outside = [line for line in done.stdout.splitlines() if not line.partition(" ")[2].startswith(f"{venv}/")]
    if outside:
        sys.exit("\n".join(["These are not imported from their wheels:", *outside]))


def _python(venv: Path, *arguments: str) -> list[str]:
    return [str(venv / "bin" / "python"), *arguments]


if __name__ == "__main__":
    main()
