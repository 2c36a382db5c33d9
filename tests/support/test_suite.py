"""The suites: what is shared and what runs alone, what is run again, what is resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import soak
import suite
from tree import ROOT, tree_files

pytest_plugins = ["pytester"]

Calls = list[list[str]]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for what suites write."""
    for name, place in (("WORK", tmp_path), ("RERUNS", tmp_path / "reruns.json"), ("CACHE", tmp_path / "cache")):
        monkeypatch.setattr(suite, name, place)
    return tmp_path


def play(monkeypatch: pytest.MonkeyPatch, *endings: tuple[int, list[str]]) -> Calls:
    """Put these endings, each a status and the tests that failed, in the place of pytest; the calls that it gets."""
    calls: Calls = []
    left: Iterator[tuple[int, list[str]]] = iter(endings)

    def pytest_(arguments: list[str], coverage: bool) -> int:
        calls.append(arguments)
        status, failed = next(left)
        file = suite.CACHE / "v" / "cache" / "lastfailed"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(dict.fromkeys(failed, True)), encoding="utf-8")
        return status

    monkeypatch.setattr(suite, "_pytest", pytest_)
    return calls


def test_a_suite_shares_its_tests_and_then_runs_those_that_run_alone(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBS", "3")
    calls = play(monkeypatch, (0, []), (0, []))
    assert suite.run("test", ["-k", "name"], coverage=False) == 0
    shared, alone = calls
    assert shared == [
        "-n",
        "3",
        "-m",
        "(not slow and not server and not soak) and not alone and not server",
        *shared[4:],
    ]
    assert shared[-2:] == alone[-2:] == ["-k", "name"]
    assert "(not slow and not server and not soak) and (alone or server or soak)" in alone
    assert any(argument.endswith("test_journal.py") for argument in alone), "only files that say so are collected"


def test_slow_tests_start_with_the_files_that_take_longest_and_collect_no_file_without_one(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = play(monkeypatch, (0, []), (0, []))
    assert suite.run("slow", [], coverage=False) == 0
    files = [argument.removeprefix(f"{ROOT}/") for argument in calls[0] if argument.endswith(".py")]
    assert files[0] == "tests/docs/test_pages.py"
    assert files == sorted(files, key=lambda name: suite._length(ROOT / name))
    assert all(suite.says_slow(ROOT / file) for file in files)
    assert 50 < len(files) < len([file for file in tree_files() if file.name.startswith("test_")])
    assert all(any(file.startswith(longest) for file in files) for longest in suite.LONGEST)


def test_a_test_that_fails_alone_runs_again_once_and_is_counted(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = play(monkeypatch, (0, []), (1, ["a.py::test_time"]), (0, []))
    assert suite.run("test", [], coverage=False) == 0
    assert "--last-failed" in calls[2]
    assert json.loads(suite.RERUNS.read_text(encoding="utf-8")) == {"test": ["a.py::test_time"]}


def test_a_test_that_fails_twice_fails_the_suite(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, (0, []), (1, ["a.py::test_time"]), (1, ["a.py::test_time"]))
    assert suite.run("test", [], coverage=False) == 1


def test_four_tests_that_fail_alone_are_not_run_again(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = play(monkeypatch, (0, []), (1, [f"a.py::test_{number}" for number in range(4)]))
    assert suite.run("slow", [], coverage=False) == 1
    assert len(calls) == 2
    assert len(json.loads(suite.RERUNS.read_text(encoding="utf-8"))["slow"]) == 4


def test_a_shared_test_that_fails_is_not_run_again(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = play(monkeypatch, (1, []), (0, []))
    assert suite.run("test", [], coverage=False) == 1
    assert len(calls) == 2


@pytest.mark.parametrize(("first", "second", "status"), [(5, 0, 0), (0, 5, 0), (5, 5, 5)])
def test_no_test_in_one_half_is_no_failure(
    work: Path, monkeypatch: pytest.MonkeyPatch, first: int, second: int, status: int
) -> None:
    play(monkeypatch, (first, []), (second, []))
    assert suite.run("test", ["-k", "name"], coverage=False) == status


def test_a_first_failure_that_should_end_the_run_ends_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = play(monkeypatch, (1, []))
    assert suite.run("test", ["-x"], coverage=False) == 1
    assert len(calls) == 1


@pytest.mark.slow
def test_a_soak_that_passed_is_not_run_again_and_its_figures_are_kept(pytester: pytest.Pytester) -> None:
    record = pytester.path / "soak.json"
    pytester.makeconftest("pytest_plugins = ['soak']")
    limits = "session_timeout = 0.001\nfaulthandler_timeout = 0.2\nfaulthandler_exit_on_timeout = true\n"
    soaks = f"markers =\n  soak: a\nsoak_record = {record}\n"
    pytester.makeini(f"[pytest]\n{limits}{soaks}pythonpath = {_folders()}\n")
    pytester.makepyfile(
        """
        import pytest
        import threading

        @pytest.mark.soak
        def test_long(record_property):
            threading.Event().wait(0.5)
            record_property("rounds", 3)

        @pytest.mark.soak
        def test_broken():
            assert False
        """
    )
    options = ["-p", "no:cacheprovider", *suite.WITHOUT_LIMITS]
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1, failed=1)
    entries = json.loads(record.read_text(encoding="utf-8"))
    long = entries["test_a_soak_that_passed_is_not_run_again_and_its_figures_are_kept.py::test_long"]
    assert (long["outcome"], long["figures"]) == ("passed", {"rounds": 3})
    pytester.runpytest_subprocess(*options).assert_outcomes(failed=1, deselected=1)


def _folders() -> str:
    return " ".join(str(Path(str(module.__file__)).parent) for module in (soak, suite))
