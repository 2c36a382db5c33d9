"""Tools of other frameworks in a pool (`with_*.py`), and members of a pool in other frameworks (`into_*.py`).

Each framework is there in its newest release, in an environment of its own. Needs a package index; what cannot be had
is skipped with the reason.
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
FILES = sorted(path for path in PROGRAMS.glob("*.py") if path.stem.startswith(("with_", "into_")))


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
@pytest.mark.parametrize("program", FILES, ids=lambda path: path.stem)
def test_tools_are_called_with_right_and_wrong_arguments(program: Path) -> None:
    framework = program.stem.partition("_")[2]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'sdk'}{os.pathsep}{PROGRAMS}"}
    done = subprocess.run(
        [str(prepared(framework)), str(program)], capture_output=True, text=True, timeout=240, env=environment
    )
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [came for _, _, came, _ in seen] == [expected for _, expected, _, _ in seen], seen
    assert len(seen) >= 5


EXAMPLES = {
    "from_langchain": ("langchain", "OK 42\n"),
    "to_langchain": (
        "langchain",
        "success 50.0\n"
        'error PARSE_ERR invalid_arguments: /celsius: expected number, got "warm"; example: {"celsius": 1}\n',
    ),
    "to_openai_agents": ("openai_agents", 'approve erase {"name":"old.txt"}\nIt is gone.\n'),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_the_documentation_runs_in_its_framework(name: str, tmp_path: Path) -> None:
    framework, printed = EXAMPLES[name]
    program = ROOT / "docs" / "examples" / "foreign" / f"{name}.py"
    done = subprocess.run(
        [str(prepared(framework)), str(program)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk")},
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_every_example_that_needs_a_framework_is_run_by_this_test() -> None:
    folder = ROOT / "docs" / "examples" / "foreign"
    foreign = {path.stem for path in folder.glob("*.py") if path.stem.endswith(("_langchain", "_openai_agents"))}
    assert foreign == set(EXAMPLES)
