"""A reader who follows a page: an empty folder, an environment of its own, and a shell.

The environment is a fresh virtual one on top of that of the tests, so that `pip install` of a page changes nothing
else. Nothing is fetched: pip installs what lies in the folder, without dependencies and with the build tool at hand.
"""

from __future__ import annotations

import os
import re
import shlex
import site
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from .documents import Command

SECONDS = 300
"""How long a command of a page, or an example, may take on a machine that is busy with other things."""

_OF_THE_MACHINE = re.compile(r"^the event loop was blocked for .*, not by a concertino call\n", re.MULTILINE)
"""What a program also prints on a machine that was busy with something else."""

_SHIMS = {
    "pip": 'shift; exec {python} -m pip install --quiet --no-deps --no-index --no-build-isolation "$@"',
    "pytest": 'exec {python} -m pytest -p no:cacheprovider "$@"',
    "concertino": 'exec {python} -m concertino "$@"',
}


class Reader:
    """Follows a page in `folder`; a command has that many seconds."""

    def __init__(self, folder: Path, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self.folder = folder / "reader"
        self.folder.mkdir()
        self._bin = folder / "environment" / "bin"
        self._make_environment(folder / "environment")

    def _make_environment(self, where: Path) -> None:
        venv.create(where, with_pip=False, symlinks=True)
        (packages,) = where.glob("lib/python*/site-packages")
        below = "\n".join(f"import site; site.addsitedir({path!r})" for path in site.getsitepackages())
        (packages / "below.pth").write_text(below + "\n", encoding="utf-8")
        for name, script in _SHIMS.items():
            text = script.format(python=shlex.quote(str(self._bin / "python")))
            (self._bin / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (self._bin / name).chmod(0o755)

    def save(self, name: str, text: str) -> None:
        """Save a file that the page shows."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")

    def type(self, command: Command) -> tuple[str, int]:
        """Type a command; what it prints, on both streams, and its exit status."""
        done = subprocess.run(
            ["/bin/sh", "-c", command.line],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.seconds,
            check=False,
        )
        return _OF_THE_MACHINE.sub("", done.stdout), done.returncode

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CONCERTINO_", "PYTHON"))}
        path = os.pathsep.join([str(self._bin), os.environ["PATH"]])
        # A newcomer has trusted nothing yet.
        kept["CONCERTINO_HOME"] = str(self._bin.parent / "home")
        return {**kept, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONDONTWRITEBYTECODE": "1"}


def run_file(file: Path, folder: Path, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run one example in a fresh process, in a folder of its own; `more` is added to the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CONCERTINO_")}
    kept.update({"CONCERTINO_TRUST": "all", **(more or {})})
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(
        [sys.executable, "-W", "error", str(file)],
        cwd=folder, env=kept, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
