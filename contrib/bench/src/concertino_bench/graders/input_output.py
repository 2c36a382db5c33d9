"""Programs that read an input and print an output, as in programming contests: right only if every output is.

The script `sandbox_streams` runs in the sandbox of the pool: the program is started once, and each test is a run of its
own. The invariants: the expected outputs never are in a process of the program; a time or memory limit holds for each
test; and what one sandbox has no time for is run in the next, so many tests need no larger sandbox. A task's metadata:

    tests        [{"input": "2 3\n", "output": "5\n"}, ...]; with `entry_point` the input is JSON, the list of its
                 arguments, and the output the JSON of its result
    entry_point  a function, or a method of a class `Solution`; empty or absent for a program that reads stdin
    compare      "words" (the default: blanks do not count) or "lines" (they part words alone; numbers count as numbers)
    tolerance    how far a word may be off that is a number, not a whole one; absent: words are compared as they are
    relative_tolerance  the same as a share of the expected number; both add up
    ignore_case  whether YES is yes
    unwrap       whether a result may also equal the first item of the expected list
    imports      whether the program finds the usual names of the standard library imported
    seconds, memory_mb  limits of each test
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .base import shown
from .program_trial import read_programs, run_script

_SCRIPT = "sandbox_streams.py"
# Characters of tests that go into one sandbox: few enough for its memory, and more than almost all programs have.
_AT_ONCE = 16_000_000


class InputOutput(Grader):
    """Right if every test's output is; `passed` in the values is the share of tests that pass.

    Args:
        tool: the sandbox, a tool that takes `code`.
        seconds: of wall clock for each test of a task that names no limit.
        memory_mb: that each run may take more than the interpreter has, likewise.
        call_seconds: of one sandbox, less than its own limit `wall` (10 by default). No test can have more.
    """

    name = "input-output"
    kinds = ("program",)

    def __init__(
        self,
        tool: str = "code/python",
        *,
        seconds: float = 6.0,
        memory_mb: float = 256.0,
        call_seconds: float = 9.0,
    ) -> None:
        if min(seconds, memory_mb, call_seconds) <= 0:
            raise ValueError(
                f"InputOutput(seconds={seconds}, memory_mb={memory_mb}, call_seconds={call_seconds}); "
                "expected numbers above 0"
            )
        self.tool, self.seconds, self.memory_mb, self.call_seconds = tool, seconds, memory_mb, call_seconds
        self.needs = (f"tool:{tool}",)

    def check(self, task: Task) -> None:
        """Make sure that the task has tests, and limits that are numbers."""
        _tests(task)
        self._job(task)

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Run the program with every test, in as many sandboxes as that takes; a run out of time is the last one."""
        tests, job = _tests(task), self._job(task)
        programs = read_programs(submission.text, job["entry"])
        marks, trouble, over = "", "", False
        while len(marks) < len(tests) and not over:
            packed = _packed({**job, "tests": _some(tests[len(marks) :])})
            seen = await run_script(services, self.tool, _SCRIPT, programs, packed)
            if isinstance(seen, Grade):
                # The program ended the sandbox: that is a verdict on the test that was running, and ends the count.
                blamed = seen.verdict is Verdict.WRONG
                return _grade(marks, len(tests), seen.reason, programs) if blamed else seen
            ran = "".join(mark for mark in str(seen.get("marks", "")) if mark in "01")
            trouble = trouble or _where(len(marks) + ran.find("0"), tests, str(seen.get("trouble", "")))
            over = bool(seen.get("over")) or not ran
            marks += ran
        return _grade(marks, len(tests), trouble, programs)

    def _job(self, task: Task) -> dict[str, Any]:
        compare = task.metadata.get("compare", "words")
        if compare not in ("words", "lines"):
            raise ValueError(f"{task.id}: metadata['compare'] is {compare!r}; expected 'words' or 'lines'")
        entry = str(task.metadata.get("entry_point") or "")
        rule = {
            "value": bool(entry),
            "lines": compare == "lines",
            "tolerance": _number(task, "tolerance", 0.0),
            "relative": _number(task, "relative_tolerance", 0.0),
            "fold": bool(task.metadata.get("ignore_case")),
            "unwrap": bool(task.metadata.get("unwrap")),
        }
        return {
            "entry": entry,
            "imports": bool(task.metadata.get("imports")),
            "rule": rule,
            "seconds": min(_number(task, "seconds", self.seconds), self.call_seconds),
            "memory": int(_number(task, "memory_mb", self.memory_mb) * (1 << 20)),
            "call": self.call_seconds,
        }


def _tests(task: Task) -> list[tuple[str, str]]:
    language = task.metadata.get("language", "python")
    if language != "python":
        raise ValueError(f"{task.id}: metadata['language'] is {language!r}; the grader `input-output` runs Python only")
    tests = task.metadata.get("tests")
    found = [
        (test["input"], test["output"])
        for test in (tests if isinstance(tests, (list, tuple)) else ())
        if isinstance(test, Mapping) and isinstance(test.get("input"), str) and isinstance(test.get("output"), str)
    ]
    if not found or len(found) != len(tests or ()):
        raise ValueError(
            f"{task.id}: metadata['tests'] is {shown(repr(tests))}; "
            'expected a list of {"input": text, "output": text} that is not empty'
        )
    return found


def _number(task: Task, name: str, default: float) -> float:
    value = task.metadata.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise ValueError(f"{task.id}: metadata[{name!r}] is {value!r}; expected a number above 0")
    return float(value)


def _some(tests: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The first of these tests, at least one, as many as go into one sandbox."""
    size, count = 0, 0
    for given, expected in tests:
        size += len(given) + len(expected)
        if count and size > _AT_ONCE:
            break
        count += 1
    return list(tests[:count])


def _packed(job: Mapping[str, Any]) -> str:
    return base64.b85encode(zlib.compress(json.dumps(job).encode(), 1)).decode()


def _where(number: int, tests: Sequence[Any], trouble: str) -> str:
    return f"test {number + 1} of {len(tests)} fails: {trouble}" if trouble else ""


def _grade(marks: str, count: int, trouble: str, programs: Sequence[str]) -> Grade:
    # Tests that were not reached are not passed.
    passed = tuple(mark == "1" for mark in marks.ljust(count, "0"))
    values = {"passed": sum(passed) / count}
    found = (programs[0],)
    if all(passed):
        return Grade(Verdict.RIGHT, "all tests pass", found=found, marks=passed, values=values)
    reason = f"{sum(passed)} of {count} tests pass; {shown(trouble, 240)}"
    return Grade(Verdict.WRONG, reason, found=found, marks=passed, values=values)
