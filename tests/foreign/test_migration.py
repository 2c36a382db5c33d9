"""The programs of the migration pages in the other frameworks, each in its newest release; ours are in `tests/docs`.

They need a package index; what cannot be had is skipped with the reason.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import migration
import pytest
from environments import QUIET, Absent, environment

IN = {name: name.partition("in_")[2].replace("_", "-") for name in migration.THEIRS}
"""The framework of each program."""


@pytest.mark.soak
@pytest.mark.parametrize("name", migration.THEIRS)
def test_a_program_in_another_framework_prints_what_ours_prints(name: str, tmp_path: Path) -> None:
    try:
        python = environment(IN[name])
    except Absent as absent:
        pytest.skip(f"{IN[name]}: {absent}")
    with migration.server() as server:
        done = subprocess.run(
            [str(python), str(migration.MIGRATION / f"{name}.py")],
            cwd=tmp_path,
            env={**os.environ, **QUIET, **server.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, migration.expected(migration.THEIRS[name])), done.stderr
