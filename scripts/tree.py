"""What this repository holds: the SDK's own distribution at the root, and its members.

A *member* is a folder under `providers/` or `contrib/` that has a `pyproject.toml`: one distribution that
is installed, tested and published alone. Adding such a folder is all it takes to be found, and everything
that walks the tree (set-up, wheels, tests) asks this module: "what is a member" is decided in one place.

A member too heavy for everyone's set-up opts out in its pyproject:

    [tool.concertino]
    default-install = false
"""

from __future__ import annotations

import functools
import io
import subprocess
import tokenize
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class InvalidMember(Exception):
    """A pyproject.toml of the tree cannot be used; the message names the file and what it lacks."""


@dataclass(frozen=True)
class Member:
    """One distribution of the tree: the folder it is built from and its parsed pyproject."""

    path: Path
    pyproject: dict[str, Any]

    @property
    def name(self) -> str:
        """The distribution's name, e.g. `concertino-reasoning`."""
        return str(self.pyproject["project"]["name"])

    @property
    def import_name(self) -> str:
        """The flat import name, e.g. `concertino_reasoning`."""
        return self.name.replace("-", "_")

    @property
    def default_install(self) -> bool:
        """Whether `make` installs it unasked."""
        return bool(self.pyproject.get("tool", {}).get("concertino", {}).get("default-install", True))

    @property
    def relative(self) -> str:
        """The folder as seen from the root, with forward slashes; `.` for the SDK."""
        return self.path.relative_to(ROOT).as_posix()


def sdk() -> Member:
    """The SDK itself, built from the root."""
    return _read(ROOT)


def members() -> list[Member]:
    """Every provider and contrib distribution, sorted by folder."""
    found = [*ROOT.glob("providers/*/pyproject.toml"), *ROOT.glob("contrib/*/pyproject.toml")]
    return [_read(pyproject.parent) for pyproject in sorted(found)]


def tree_files() -> list[Path]:
    """Every file of the tree: those in git and those about to be; without git, all but generated folders."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (FileNotFoundError, subprocess.CalledProcessError):
        generated = {".git", ".venv", ".make", ".cache", "dist", "site", "__pycache__"}
        return [f for f in ROOT.rglob("*") if f.is_file() and not generated & set(f.relative_to(ROOT).parts)]
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@functools.cache
def comments(file: Path) -> list[str]:
    """The comments of a Python file, each with its `#`. A file is read once."""
    source = io.StringIO(file.read_text(encoding="utf-8"))
    return [token.string for token in tokenize.generate_tokens(source.readline) if token.type == tokenize.COMMENT]


def _read(folder: Path) -> Member:
    file = folder / "pyproject.toml"
    try:
        pyproject = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidMember(f"{file} is not valid TOML: {error}") from None
    for table, key in (("project", "name"), ("build-system", "requires")):
        if key not in pyproject.get(table, {}):
            raise InvalidMember(f"{file} has no `{key}` under [{table}]; the root pyproject.toml shows the form")
    return Member(folder, pyproject)
