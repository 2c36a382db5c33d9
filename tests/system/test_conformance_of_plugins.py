"""Conformance as a user sees it: each distribution of the tree passes, and so does a plugin of somebody else.

The plugin is what `concertino new plugin` writes. It is built as a wheel and installed by pip, with the SDK's own
wheel, into an environment in which nothing else was ever installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = {file.parent: tomllib.loads(file.read_text())["project"] for file in sorted(ROOT.glob("*/*/pyproject.toml"))}
PLUGINS = {
    project["name"]: home for home, project in PROJECTS.items() if "concertino" in project.get("entry-points", {})
}
"""Folders of the distributions, by name; what one is checked with, if it needs settings, is in its tests."""


@pytest.mark.slow
@pytest.mark.parametrize("distribution", PLUGINS)
def test_a_distribution_of_the_tree_conforms_and_leaves_nothing_unchecked(distribution: str, tmp_path: Path) -> None:
    settings = PLUGINS[distribution] / "tests/concertino.toml"
    if settings.exists():
        shutil.copy(settings, tmp_path)
    done = run(sys.executable, "-m", "concertino", "check", distribution, "--strict", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{distribution} conforms: " in done.stdout


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CONCERTINO"))}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)


def ran(*command: str | Path, folder: Path) -> str:
    done = run(*command, folder=folder)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheels of the SDK and of a new plugin."""
    folder = tmp_path_factory.mktemp("third-party")
    ran(sys.executable, "-m", "concertino", "new", "plugin", "words", "--tool", "--agent", "--model", folder=folder)
    wheels = folder / "wheels"
    for source in (ROOT, folder / "concertino-words"):
        build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", wheels, source)
        ran(*build, folder=folder)
    ran(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-input")
    done = run(*pip, *sorted(wheels.glob("*.whl")), folder=folder)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"pip has no index here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return python


@pytest.mark.slow
def test_a_new_plugin_s_wheel_installs_conforms_and_works_in_a_fresh_environment(plugin: Path, tmp_path: Path) -> None:
    report = json.loads(
        ran(plugin, "-m", "concertino", "check", "concertino-words", "--strict", "--json", folder=tmp_path)
    )
    assert (report["ok"], report["complete"], report["counts"]["failed"]) == (True, True, 0)
    subjects = {row["subject"] for row in report["rows"]}
    assert subjects == {"plugin words", "words/count_letter", "words/summarise", "words/echo"}
    call = ("call", "words/count_letter", '{"text": "banana", "letter": "a"}')
    assert ran(plugin, "-m", "concertino", *call, folder=tmp_path) == "3\n"
    (row,) = json.loads(ran(plugin, "-m", "concertino", "plugins", "--load", "--json", folder=tmp_path))
    assert (row["name"], row["state"], row["distribution"]) == ("words", "loaded", "concertino-words")


@pytest.mark.slow
def test_a_fault_in_an_installed_plugin_is_a_failed_check_with_exit_code_1(plugin: Path, tmp_path: Path) -> None:
    (installed,) = {file.resolve() for file in plugin.parents[1].rglob("concertino_words/tools.py")}
    text = installed.read_text()
    installed.write_text(text.replace("return text.lower()", "__import__('time').sleep(9)\n    return text.lower()"))
    try:
        done = run(plugin, "-m", "concertino", "check", "words", "--only", "count_letter", folder=tmp_path)
    finally:
        installed.write_text(text)
    assert done.returncode == 1
    assert "ended as TIMEOUT" in done.stdout
    assert "words does not conform" in done.stderr
