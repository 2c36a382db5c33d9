"""Collect what `make gpu` needs on a machine that has torch, transformers and no network; `make carry`.

    python scripts/carry.py [--python 3.12] [--platform manylinux_2_28_x86_64]

The wheels go to .make/carry, to be copied along with the tree. They are those that are installed here, with all that
they require, but for what torch and transformers bring. The invariant: together they have at most 60 MiB. So what no
import needs is taken out of them: tests, headers, and a library of pyarrow that serves tables over a network.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from gpu_environment import CARRIED, THEIRS
from packaging.requirements import Requirement
from tree import ROOT, members, sdk

MOST = 60 * 2**20
WANTED = (
    "concertino-train",
    "concertino-vllm",
    "pytest",
    "pytest-asyncio",
    "pytest-timeout",
    "pytest-xdist",
    "hypothesis",
)
# jsonschema does the same, more slowly.
LEFT_OUT = {"jsonschema-rs"}
NOT_IMPORTED = re.compile(r"^[^/]+/(tests|include|src)/|/tests/|\.(pxd|pyx|h|hpp)$|^pyarrow/(lib)?_?(arrow_)?flight")


def closure(names: tuple[str, ...]) -> set[str]:
    """Distributions that are installed here, and all that they require here."""
    found: dict[str, set[str]] = {}
    waiting = [(name, frozenset[str]()) for name in names]
    while waiting:
        name, extras = waiting.pop()
        name = re.sub(r"[-_.]+", "-", name).lower()
        if name in found and extras <= found[name]:
            continue
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # required only where it is
        found.setdefault(name, set()).update(extras)
        for requirement in map(Requirement, requires):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append((requirement.name, frozenset(requirement.extras)))
    return set(found)


def carried() -> list[str]:
    """What is collected, as `name==version`."""
    own = {member.name for member in [sdk(), *members()]}
    names = closure(WANTED) - closure(THEIRS) - own - LEFT_OUT
    return [f"{name}=={distribution(name).version}" for name in sorted(names)]


def slim(wheel: Path) -> None:
    """Take out of a wheel what no import needs."""
    thin = wheel.with_suffix(".part")
    with (
        zipfile.ZipFile(wheel) as old,
        zipfile.ZipFile(thin, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        for each in old.infolist():
            if not NOT_IMPORTED.search(each.filename):
                new.writestr(each, old.read(each), zipfile.ZIP_DEFLATED, 9)
    thin.replace(wheel)


def main() -> None:
    """Collect, and say how much it is."""
    parser = argparse.ArgumentParser(prog="make carry", description="Collect wheels for make gpu.")
    parser.add_argument("--python", default="", help="version of the Python there, such as 3.12; that of this one")
    parser.add_argument("--platform", action="append", default=[], help="tag of the machine there; that of this one")
    asked = parser.parse_args()
    shutil.rmtree(CARRIED, ignore_errors=True)
    CARRIED.mkdir(parents=True)
    there = ["--python-version", asked.python] if asked.python else []
    there += [word for tag in asked.platform for word in ("--platform", tag)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *there]
    done = subprocess.run([*command, "-d", str(CARRIED), *carried()], check=False)
    if done.returncode:
        sys.exit("The wheels could not be had; what pip says is above.")
    wheels = sorted(CARRIED.glob("*.whl"))
    for wheel in wheels:
        slim(wheel)
    sizes = {wheel.name: wheel.stat().st_size for wheel in wheels}
    total = sum(sizes.values())
    largest = ", ".join(f"{name} {sizes[name] / 2**20:.1f}" for name in sorted(sizes, key=lambda n: -sizes[n])[:4])
    print(f"{len(wheels)} wheels, {total / 2**20:.1f} MiB, in {CARRIED.relative_to(ROOT)}; the largest: {largest}")
    if total > MOST:
        sys.exit(f"{total / 2**20:.1f} MiB is more than {MOST / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
