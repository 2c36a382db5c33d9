"""`make gpu`: its parts, what is resumed, the environment without a network, the page."""

from __future__ import annotations

import json
import sys
import time
import zipfile
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import carry
import gpu
import gpu_environment
import gpu_page
import pytest
from tree import members, sdk

PYTHON = Path(sys.executable)
WRITES = "import json, pathlib, sys; pathlib.Path(sys.argv[1], 'figures.json').write_text(json.dumps({'seen': 1}))"


def part(name: str, code: str, limit: float = 60) -> gpu.Part:
    return gpu.Part(name, ("-c", code), limit)


def figures(cuda: str | None, **more: Any) -> dict[str, Any]:
    versions = {"torch": "2.13.0"}
    made = {"device": "NVIDIA H200", "cuda": cuda, "python": "3.12.1", "versions": versions, "measured_rate": 7e14}
    return {"machine": {**made, "measured_bandwidth": 4e12, "peak_rate": 989e12, "peak_of": "data sheet", **more}}


def report(cuda: str | None = "12.8", *names: str) -> dict[str, Any]:
    ran = {"outcome": "passed", "seconds": 9.0, "figures": figures(cuda)}
    return {"date": "2026-11-29", "parts": dict.fromkeys(names or ("machine", "tests", "small", "large"), ran)}


# -- the parts -----------------------------------------------------------------------------------------------------


def test_a_part_that_fails_is_reported_and_the_others_still_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [part("bad", "print('why it failed'); raise SystemExit(3)"), part("good", WRITES)]
    found = gpu.run(PYTHON, parts, tmp_path, "source")
    assert [each["outcome"] for each in found.values()] == ["failed with status 3", "passed"]
    assert found["good"]["figures"] == {"seen": 1}
    assert "why it failed" in capsys.readouterr().out
    assert "why it failed" in (tmp_path / "bad" / "output.txt").read_text()


def test_what_has_passed_is_not_run_again_until_the_source_changes(tmp_path: Path) -> None:
    counted = part("counted", "import pathlib, sys; open(pathlib.Path(sys.argv[1]).parent / 'runs', 'a').write('.')")
    for source in ("one", "one", "two"):
        assert gpu.run(PYTHON, [counted], tmp_path, source)["counted"]["outcome"] == "passed"
    assert (tmp_path / "runs").read_text() == ".."


def test_a_part_is_stopped_at_its_limit_with_all_that_it_started_and_keeps_its_figures(tmp_path: Path) -> None:
    child = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    )
    wait = f"{WRITES}; {child} open(sys.argv[1] + '/child', 'w').write(str(p.pid)); time.sleep(600)"
    found = gpu.run(PYTHON, [part("long", wait, limit=3)], tmp_path, "source")["long"]
    assert found["outcome"].startswith("stopped at its limit of 3 s")
    assert found["figures"] == {"seen": 1}
    pid = int((tmp_path / "long" / "child").read_text())
    for _ in range(200):
        if not _lives(pid):
            break
        time.sleep(0.05)
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_part_that_was_stopped_finds_its_folder_as_it_left_it_unless_the_source_changed(tmp_path: Path) -> None:
    begun = part("begun", "import sys; open(sys.argv[1] + '/stage', 'x'); raise SystemExit(1)")
    assert gpu.run(PYTHON, [begun], tmp_path, "one")["begun"]["outcome"] == "failed with status 1"
    goes_on = part("begun", "import sys; open(sys.argv[1] + '/stage')")
    assert gpu.run(PYTHON, [goes_on], tmp_path, "one")["begun"]["outcome"] == "passed"
    assert gpu.run(PYTHON, [goes_on], tmp_path, "two")["begun"]["outcome"] == "failed with status 1"


def test_the_tests_of_a_gpu_are_those_of_files_that_mark_them_and_no_others_are_collected() -> None:
    files = gpu.gpu_tests()
    assert "contrib/train/tests/trainer/test_trainer_gpu.py" in files
    assert len(files) < 10


def test_all_parts_together_take_at_most_nine_minutes_on_a_gpu() -> None:
    assert sum(each.limit for each in gpu.PARTS) <= 9 * 60


# -- the environment -----------------------------------------------------------------------------------------------


def test_the_tree_is_known_without_any_build_tool(tmp_path: Path) -> None:
    gpu_environment.know_tree(tmp_path)
    known = {each.name: each for each in distributions(path=[str(tmp_path)])}
    for member in [sdk(), *members()]:
        project = member.pyproject["project"]
        entries = {(each.group, each.name, each.value) for each in known[member.name].entry_points}
        wanted = {(group, *pair) for group, rows in project.get("entry-points", {}).items() for pair in rows.items()}
        assert wanted <= entries
        assert known[member.name].version == project["version"]
    folders = (tmp_path / "concertino-tree.pth").read_text().split()
    assert all(any(Path(folder).glob("*/__init__.py")) for folder in folders)


def test_a_python_without_torch_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu_environment, "OWN", tmp_path / "venv")
    monkeypatch.setattr(gpu_environment, "missing", lambda executable, names: list(names))
    with pytest.raises(gpu_environment.NotReady, match=r"no torch and no transformers; .*make gpu PYTHON="):
        gpu_environment.python()
    assert not (tmp_path / "venv").exists()


@pytest.mark.slow
def test_what_is_carried_is_neither_the_tree_nor_what_torch_brings() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    names = {each.partition("==")[0] for each in carry.carried()}
    assert {"trl", "peft", "datasets", "pyarrow", "pytest-timeout"} <= names
    assert not names & {"torch", "transformers", "numpy", "concertino-train", "concertino"}


def test_a_wheel_loses_what_no_import_needs_and_nothing_else(tmp_path: Path) -> None:
    kept = {
        "pyarrow/lib.so": b"1",
        "pyarrow/libarrow_python.so": b"2",
        "pyarrow-1.dist-info/RECORD": b"3",
        "a/b.py": b"",
    }
    left = ("pyarrow/tests/test_a.py", "pyarrow/include/a.h", "pyarrow/libarrow_flight.so.2600", "pyarrow/_flight.so")
    wheel = tmp_path / "pyarrow-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name in (*kept, *left):
            file.writestr(name, kept.get(name, b"x"))
    carry.slim(wheel)
    with zipfile.ZipFile(wheel) as file:
        assert {name: file.read(name) for name in file.namelist()} == kept


# -- the page ------------------------------------------------------------------------------------------------------


def test_the_page_says_what_was_not_measured() -> None:
    made = report()
    stage: dict[str, Any] = {
        "generated_per_second": 10.0,
        "updated_per_second": 20.0,
        "reached": 0.4 * 989e12,
        "seconds": 2.0,
    }
    stage |= {"outside": 0.125, "peak_memory": 2**30, "generate_seconds": 1.0, "update_seconds": 0.75}
    stage["planned"] = {"memory": 2**29, "sample_seconds": None, "update_seconds": 1.5, "sample_rate": None}
    found = {**figures("12.8"), "rl": stage, "before": {"rewards": [0.0, 1.0]}, "after": {"rewards": [1.0, 1.0]}}
    made["parts"]["small"] = {**made["parts"]["small"], "figures": found}
    rows = dict(line.strip("| ").split(" | ", 1) for line in gpu_page.page(made).splitlines() if line.startswith("| "))
    assert rows["update: share of the peak (MFU)"] == "40.0% | not measured"
    assert rows["share of a step outside generation and update"] == "12.5% | not measured"
    assert rows["measured over planned: memory"] == "2.00 | not measured"
    assert rows["measured over planned: seconds of generation"] == "not measured | not measured"
    assert rows["gain, 95 % interval"] == "+0.500 [-0.480, 1.480] | not measured"
    assert "gain with rewards dealt out at random" not in rows


@pytest.mark.parametrize(
    ("made", "published"),
    [(report(None), False), (report("12.8", "machine", "small"), False), (report(), True)],
    ids=["of a CPU", "of some parts", "of a GPU"],
)
def test_only_whole_figures_of_a_gpu_are_published(
    made: dict[str, Any], published: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "performance.md"
    before = f"# Performance\n\n{gpu_page.BEGIN}\n\nnot measured\n\n{gpu_page.END}\n\n## More\n"
    place.write_text(before)
    monkeypatch.setattr(gpu_page, "PUBLISHED", place)
    assert gpu_page.publish("the page\n", made) is published
    after = place.read_text()
    assert after == (before.replace("not measured", "the page") if published else before)


def test_the_documentation_has_a_place_for_the_page() -> None:
    text = gpu_page.PUBLISHED.read_text(encoding="utf-8")
    assert text.count(gpu_page.BEGIN) == text.count(gpu_page.END) == 1


# -- what learns ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_model_is_taught_reinforced_and_measured_and_no_stage_is_done_twice(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    import gpu_learning

    least = replace(gpu_learning.SIZES["small", False], taught=12, sft_steps=3, rl_steps=1, tests=2)
    done = {"control": {"steps": 1}, "after_control": {"rewards": [0.0, 1.0]}}  # the same work as without the control
    (tmp_path / "figures.json").write_text(json.dumps(done))
    found = gpu_learning.learn(least, tmp_path, cuda=False)
    assert list(found) == [*done, "machine", "collect", "sft", "before", "rl", "after"]
    assert found | done == found
    assert all(found["rl"][name] > 0 for name in ("generated_per_second", "updated_per_second", "reached"))
    assert 0 <= found["rl"]["outside"] < 1
    assert found["rl"]["planned"]["memory"] > 0
    assert len(found["before"]["rewards"]) == len(found["after"]["rewards"]) == 2
    assert json.loads((tmp_path / "figures.json").read_text()) == found
    stamp = (tmp_path / "figures.json").stat().st_mtime_ns
    assert gpu_learning.learn(least, tmp_path, cuda=False) == found
    assert (tmp_path / "figures.json").stat().st_mtime_ns == stamp


@pytest.mark.parametrize(
    ("driver", "name"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("this CPU", None),
    ],
)
def test_the_data_sheet_of_a_gpu_is_found_by_what_its_driver_calls_it(driver: str, name: str | None) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    import gpu_learning

    found = gpu_learning.data_sheet(driver)
    assert (found.name if found else None) == name


@pytest.mark.soak
@pytest.mark.timeout(4000)
def test_the_whole_command_runs_on_this_machine(record_property: Any) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    found = gpu.run(PYTHON, [replace(each, limit=900) for each in gpu.PARTS], gpu.WORK / "soak", gpu.source_key())
    record_property("seconds", {name: each["seconds"] for name, each in found.items()})
    assert {each["outcome"] for each in found.values()} == {"passed"}
