"""Tools of other frameworks, each in its newest release and an environment of its own, called with right and wrong
arguments. Needs a package index; what cannot be had is skipped with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from environment import WORK, SetupFailed, create, pip
from tree import ROOT

PROGRAMS = Path(__file__).parent / "programs"
PLACES = WORK / "foreign"
FRAMEWORKS = {path.stem.removeprefix("with_"): path for path in sorted(PROGRAMS.glob("with_*.py"))}


def prepared(name: str) -> Path:
    """The Python of an environment with the framework and this SDK."""
    place = PLACES / name
    python, log = place / "bin" / "python", PLACES / f"{name}.log"
    if not (place / "ready").is_file():
        PLACES.mkdir(parents=True, exist_ok=True)
        try:
            create(place, log)
            pip(place, "install", name.replace("_", "-"), str(ROOT), log=log, constrained=False)
        except SetupFailed as failure:
            pytest.skip(f"{name} could not be installed: {str(failure).strip().splitlines()[-1]}")
        (place / "ready").touch()
    return python


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(FRAMEWORKS))
def test_tools_of_a_framework_are_called_with_right_and_wrong_arguments(name: str) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'sdk'}{os.pathsep}{PROGRAMS}"}
    done = subprocess.run(
        [str(prepared(name)), str(FRAMEWORKS[name])], capture_output=True, text=True, timeout=240, env=environment
    )
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [status for _, status, _ in seen] == ["OK", "OK", "PARSE_ERR", "PARSE_ERR"], seen
    assert all(content for _, status, content in seen if status == "OK")
