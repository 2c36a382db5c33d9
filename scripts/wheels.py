"""Build every distribution of the tree and run the tests against the wheels, as a user gets them.

Source and wheel differ in exactly the ways that hurt users: a module or data file missing from the wheel,
an entry point, an undeclared dependency. So: an sdist of each distribution, a wheel built *from that
sdist*, a fresh virtual environment with only the wheels and the test tools, and the same tests there.

The invariant: no distribution under test is imported from the tree. It is checked by `__file__`, not
assumed. All is built in a temporary folder; `dist/` is replaced only when everything was built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from environment import PIP, SetupFailed, create, exclusive, pip
from tree import ROOT, Member, members, sdk

DIST = ROOT / "dist"

# Prints each name with the file it was imported from.
WHENCE = "import importlib, sys; [print(n, importlib.import_module(n).__file__) for n in sys.argv[1:]]"


def main() -> None:
    """Build, install, check where imports come from, test; exit with the status of the tests."""
    with exclusive("wheels"), tempfile.TemporaryDirectory(prefix="concertino-wheels-") as temporary:
        distributions = [sdk(), *members()]
        _build(distributions, Path(temporary) / "dist")
        venv = Path(temporary) / "venv"
        try:
            _install(venv, distributions)
        except SetupFailed as failure:
            sys.exit(str(failure))
        _refuse_source(venv, distributions)
        sys.exit(subprocess.call(_python(venv, "-m", "pytest", "-p", "no:cacheprovider", *sys.argv[1:]), cwd=ROOT))


def _build(distributions: list[Member], out: Path) -> None:
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


def _install(venv: Path, distributions: list[Member]) -> None:
    print("Installing the wheels into a fresh environment ...", flush=True)
    create(venv)
    pip(venv, "install", PIP)
    wheels = [str(_wheel(member)) + ("[fast]" if member.path == ROOT else "") for member in distributions]
    pip(venv, "install", "--group", "test", "--group", "servers", *wheels)


def _wheel(member: Member) -> Path:
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
