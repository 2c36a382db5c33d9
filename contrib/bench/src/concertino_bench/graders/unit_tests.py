"""Programs, tried with their tests in the sandbox of the pool: right only if every test passes.

What a solver wrote is run by the tool `code/python`, never here. A script, `sandbox_program`, goes with it: there the
tests run in one process and the program in another, which has neither the tests nor the report, and only answers
calls. The report stands behind a word that is new for each run. So a program that ends early, prints what it likes or
looks through its interpreter has passed nothing. The invariants: what cannot be compiled is *unparsable*; and a fault
of the sandbox, or a test that cannot be run this way, is *unparsable* with that as its reason, never the program's
fault. Plain data, numpy's arrays, functions of the tests and objects of the program go from one process to the other;
objects of classes that a test makes do not. A task's metadata: `tests` (a script that raises, or a list of them, each
counted), `entry_point`, `prompt` (code that the solver continues, maybe empty), `language`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .base import shown
from .program_trial import read_programs, run_script

_SCRIPT = "sandbox_program.py"


class UnitTests(Grader):
    """Right if every test passes.

    Args:
        tool: the sandbox, a tool that takes `code`.
    """

    name = "unit-tests"
    kinds = ("code",)

    def __init__(self, tool: str = "code/python") -> None:
        self.tool = tool
        self.needs = (f"tool:{tool}",)

    def check(self, task: Task) -> None:
        """Make sure that the task has tests, in Python."""
        _tests(task)

    async def grade(self, task: Task, submission: Submission, services: GraderServices) -> Grade:
        """Run the program with its tests; `passed` in the values is the share of tests that pass."""
        tests, entry, prompt = (
            _tests(task),
            str(task.metadata.get("entry_point") or ""),
            str(task.metadata.get("prompt") or ""),
        )
        programs = read_programs(submission.text, entry, prompt)
        tried = await run_script(services, self.tool, _SCRIPT, programs, tests, entry, prompt)
        return tried if isinstance(tried, Grade) else _grade(tried, programs[0])


def _grade(report: dict[str, Any], program: str) -> Grade:
    marks = tuple(bool(passed) for passed in report["passed"])
    values = {"passed": sum(marks) / len(marks)}
    if all(marks):
        reason = "all tests pass" if len(marks) > 1 else "the tests pass"
        return Grade(Verdict.RIGHT, reason, found=(program,), marks=marks, values=values)
    count = f"{sum(marks)} of {len(marks)} tests pass; " if len(marks) > 1 else ""
    return Grade(
        Verdict.WRONG, f"{count}{shown(str(report['trouble']), 200)}", found=(program,), marks=marks, values=values
    )


def _tests(task: Task) -> list[str]:
    language = task.metadata.get("language", "python")
    if language != "python":
        raise ValueError(f"{task.id}: metadata['language'] is {language!r}; the grader `unit-tests` runs Python only")
    tests = task.metadata.get("tests")
    found: Sequence[Any] = [tests] if isinstance(tests, str) else tests if isinstance(tests, (list, tuple)) else []
    if not found or not all(isinstance(test, str) and test.strip() for test in found):
        raise ValueError(
            f"{task.id}: metadata['tests'] is {shown(repr(tests))}; expected a script, or a list of scripts"
        )
    return [str(test) for test in found]
