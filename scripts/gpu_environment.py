"""A Python for `make gpu`, on a machine without a network: `.venv` where it is ready, else one made of what is there.

torch and transformers are those of the machine. What else is needed comes from wheels that `make carry` collected
elsewhere. The distributions of the tree are made known from their pyproject.toml alone, so no build tool is needed.

The invariant: the code that runs is that of the tree, and nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from tree import ROOT, Member, members, sdk

CARRIED = ROOT / ".make" / "carry"
OWN = ROOT / ".make" / "gpu" / "venv"
THEIRS = ("torch", "transformers")
"""What the machine has to have."""
NEEDED = (*THEIRS, "trl", "peft", "datasets", "accelerate", "pydantic", "pytest_asyncio", "xdist", "concertino_train")
"""What shows that an environment is ready."""


class NotReady(Exception):
    """There is no environment that would do; the message says what is missing, and what to do."""


def python() -> Path:
    """The Python that has everything; it is made where there is none.

    Raises:
        NotReady: the machine lacks torch, or the wheels are not here.
    """
    ready = ROOT / ".venv" / "bin" / "python"
    if ready.is_file() and not missing(ready, NEEDED):
        return ready
    own = OWN / "bin" / "python"
    stamp = OWN / "concertino-stamp"
    if not (stamp.is_file() and stamp.read_text() == _key()):
        _make(own)
        stamp.write_text(_key())
    return own


def missing(executable: Path | str, names: tuple[str, ...]) -> list[str]:
    """Which modules a Python cannot find."""
    code = "import importlib.util as u, sys; print(*[n for n in sys.argv[1:] if u.find_spec(n) is None])"
    done = subprocess.run([str(executable), "-c", code, *names], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else list(names)


def _make(own: Path) -> None:
    if lacks := missing(sys.executable, THEIRS):
        raise NotReady(
            f"{sys.executable} has no {' and no '.join(lacks)}; expected a Python with torch and transformers. "
            "Name it: make gpu PYTHON=/path/to/python3; or, with a network: make full"
        )
    shutil.rmtree(OWN, ignore_errors=True)
    print(f"Making {OWN.relative_to(ROOT)} ...", flush=True)
    venv.create(OWN, system_site_packages=True, with_pip=True)
    _see_outer(own)
    if wheels := sorted(map(str, CARRIED.glob("*.whl"))):
        command = [
            str(own),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
            "--disable-pip-version-check",
        ]
        done = subprocess.run([*command, *wheels], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotReady(f"{done.stderr[-2000:]}\npip could not install the wheels of {CARRIED.relative_to(ROOT)}")
    know_tree(_packages(own))
    if lacks := missing(own, NEEDED):
        raise NotReady(
            f"{OWN.relative_to(ROOT)} lacks {', '.join(lacks)}. With a network and Python {sys.version_info[0]}."
            f"{sys.version_info[1]}, run elsewhere: make carry; and copy {CARRIED.relative_to(ROOT)} to this place"
        )
    # A wheel that was made for another machine is found, and cannot be imported.
    done = subprocess.run([str(own), "-c", "import datasets"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReady(f"{done.stderr[-1000:]}\nThe wheels of {CARRIED.relative_to(ROOT)} do not work on this machine")


def _see_outer(own: Path) -> None:
    """Where this Python is itself one of a virtual environment, its packages are seen, too."""
    if sys.prefix != sys.base_prefix:
        outer = [entry for entry in sys.path if entry.endswith("site-packages")]
        (_packages(own) / "outer.pth").write_text("".join(f"{entry}\n" for entry in outer))


def know_tree(packages: Path) -> None:
    """Make the distributions of the tree known to an environment: their code, names, versions and entry points."""
    found = [sdk(), *members()]
    for member in found:
        home = packages / f"{member.import_name}-{member.pyproject['project']['version']}.dist-info"
        home.mkdir(exist_ok=True)
        (home / "METADATA").write_text(_metadata(member.pyproject["project"]))
        (home / "entry_points.txt").write_text(_entry_points(member.pyproject["project"]))
    (packages / "concertino-tree.pth").write_text("".join(f"{source_of(each)}\n" for each in found))


def source_of(member: Member) -> Path:
    """The folder that a member's code is imported from."""
    return member.path / ("sdk" if member.path == ROOT else "src")


def _metadata(project: dict[str, Any]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}"]
    lines += [f"Requires-Dist: {each}" for each in project.get("dependencies", ())]
    return "\n".join(lines) + "\n"


def _entry_points(project: dict[str, Any]) -> str:
    groups: dict[str, dict[str, str]] = {**project.get("entry-points", {})}
    if scripts := project.get("scripts"):
        groups["console_scripts"] = scripts
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for name, entries in groups.items()
    )


def _packages(own: Path) -> Path:
    (found,) = (own.parent.parent / "lib").glob("python*/site-packages")
    return found


def _key() -> str:
    """A hash of all that the environment depends on."""
    digest = hashlib.sha256(f"{sys.version} {sys.executable} {ROOT}".encode())
    for file in [*sorted(CARRIED.glob("*.whl")), *(member.path / "pyproject.toml" for member in [sdk(), *members()])]:
        digest.update(f"{file.name} {file.stat().st_size}".encode())
        if file.name == "pyproject.toml":
            digest.update(file.read_bytes())
    return digest.hexdigest()
