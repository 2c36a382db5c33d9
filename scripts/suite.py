"""Run one of the three suites of tests, each in at most three calls of pytest.

    python scripts/suite.py test | slow | soak | all [--coverage] [arguments of pytest]

`test` is what everybody runs. `slow` needs real servers or browsers, takes more than a second or two a test, or
repeats something often (markers `slow` and `server`). `soak` takes more than two minutes a test; what has passed is not
run again until the source changes, and its figures are in `.make/soak.json` (`tests/support/soak.py`). `all` is `test`
and `slow`.

The first call shares files of tests among JOBS processes. The second runs those marked `alone` or `server`, one after
the other, for they say something about time or want the whole machine. The third runs those of them again that failed,
once, if they are at most three: a machine with other load may be the cause. `.make/reruns.json` lists them. A suite
fails where a test failed among the shared ones, or twice among the others, or where more than three failed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tree import ROOT, tree_files

SUITES = {
    "test": "not slow and not server and not soak",
    "slow": "(slow or server) and not soak",
    "soak": "soak",
    "all": "not soak",
}
WITHOUT_LIMITS = ["--timeout=0", "-o", "session_timeout=", "-o", "faulthandler_timeout=0"]
"""For `soak`. The session timeout is empty, because 0 would end a session after its first test."""
MOST_RERUNS = 3
WORK = ROOT / ".make"
RERUNS = WORK / "reruns.json"
CACHE = WORK / "pytest-alone"

LONGEST = (
    "tests/docs/test_pages.py",
    "contrib/ray/tests/test_ray_runs.py",
    "tests/system/test_conformance_of_plugins.py",
    "providers/vllm/tests/test_weight_transfer.py",
    "contrib/train/tests/config",
    "contrib/train/tests/trainer",
    "contrib/train/tests/running",
)
"""Files and folders whose slow tests take a minute and more; they start first, so that all processes end together."""

_ALONE = re.compile(r"\bmark\.(alone|server|soak)\b")
_SLOW = re.compile(r"\bmark\.slow\b")
_PASSED, _FAILED, _NO_TESTS = 0, 1, 5


def says_alone(file: Path) -> bool:
    """Whether a file marks tests as `alone`, `server` or `soak`; only such files are collected by the second call."""
    return _ALONE.search(file.read_text(encoding="utf-8")) is not None


def says_slow(file: Path) -> bool:
    """Whether a file marks tests as `slow`; of the shared tests of `slow`, only such files are collected."""
    return _SLOW.search(file.read_text(encoding="utf-8")) is not None


def run(suite: str, arguments: list[str], coverage: bool) -> int:
    """Run a suite; the exit status of pytest that tells how it ended."""
    select, narrowed = SUITES[suite], _names_paths(arguments)
    jobs = os.environ.get("JOBS", "3")
    files = [] if narrowed else [file for file in tree_files() if re.fullmatch(r"test_.*\.py", file.name)]
    alone = [str(file) for file in files if says_alone(file)]
    slow = [str(file) for file in sorted(files, key=_length) if suite == "slow" and says_slow(file)]
    once = WITHOUT_LIMITS if suite == "soak" else []
    started = time.monotonic()
    first = _NO_TESTS
    if suite != "soak":
        first = _pytest(["-n", jobs, "-m", f"({select}) and not alone and not server", *slow, *arguments], coverage)
    between = time.monotonic()
    if first not in (_PASSED, _FAILED, _NO_TESTS) or (first == _FAILED and _stops_early(arguments)):
        return first
    shutil.rmtree(CACHE, ignore_errors=True)
    command = [*once, "-o", f"cache_dir={CACHE}", "-m", f"({select}) and (alone or server or soak)"]
    second = _pytest([*command, *alone, *arguments], coverage)
    again = _last_failed() if second == _FAILED else []
    _remember(suite, again)
    if again and len(again) <= MOST_RERUNS and not _stops_early(arguments):
        print("RUN AGAIN, once:", *again, sep="\n  ", flush=True)
        second = _pytest([*command, "--last-failed", "--last-failed-no-failures=none", *alone, *arguments], coverage)
    ended = time.monotonic()
    print(
        f"{suite}: {between - started:.0f} s shared, {ended - between:.0f} s alone, {len(again)} run again", flush=True
    )
    if len(again) > MOST_RERUNS:
        print(f"More than {MOST_RERUNS} tests that run alone failed; none of them was run again.", flush=True)
    results = {first, second} - {_NO_TESTS} or {_NO_TESTS}
    return max(results)


def _length(file: Path) -> int:
    """Where a file stands among the longest; after them the order is as it was."""
    name = file.relative_to(ROOT).as_posix()
    return next((place for place, longest in enumerate(LONGEST) if name.startswith(longest)), len(LONGEST))


def _pytest(arguments: list[str], coverage: bool) -> int:
    runner = ["coverage", "run", "-m", "pytest"] if coverage else ["pytest"]
    process = subprocess.Popen([sys.executable, "-m", *runner, *arguments], cwd=ROOT)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # pytest has got it too: it says what it was doing, and ends


def _last_failed() -> list[str]:
    file = CACHE / "v" / "cache" / "lastfailed"
    return list(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else []


def _remember(suite: str, failed: list[str]) -> None:
    """Put the tests that are run again into the file of reruns, beside those of the other suites."""
    WORK.mkdir(exist_ok=True)
    known = json.loads(RERUNS.read_text(encoding="utf-8")) if RERUNS.is_file() else {}
    RERUNS.write_text(json.dumps({**known, suite: failed}, indent=1) + "\n", encoding="utf-8")


def _names_paths(arguments: list[str]) -> bool:
    return any((ROOT / argument.partition("::")[0]).exists() for argument in arguments if not argument.startswith("-"))


def _stops_early(arguments: list[str]) -> bool:
    return any(re.match(r"-x$|--exitfirst|--maxfail", argument) for argument in arguments)


def main() -> None:
    """Run the suite of the command line, and exit with its status."""
    suite, *arguments = sys.argv[1:] or [""]
    if suite not in SUITES:
        sys.exit(f"unknown suite {suite!r}; expected one of: {', '.join(SUITES)}")
    coverage = "--coverage" in arguments
    sys.exit(run(suite, [each for each in arguments if each != "--coverage"], coverage))


if __name__ == "__main__":
    main()
