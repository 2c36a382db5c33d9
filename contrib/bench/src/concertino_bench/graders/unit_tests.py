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

import json
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from concertino import Observation

from concertino_bench.tasks.grade import Grade, Grader, GraderServices, Submission, Verdict
from concertino_bench.tasks.task import Task

from .answers import spoken
from .base import shown

# Characters of a program: far more than a solver writes, and few enough for the sandbox to take.
_LONGEST = 200_000
_FENCE = re.compile(r"^[ \t]{0,8}(```+|~~~+)[ \t]{0,4}([\w+.#-]{0,20})[^\n]{0,80}$", re.MULTILINE)
_START = re.compile(r"^(?:import |from |def |async def |class |@|[A-Za-z_]\w{0,60} ?=)", re.MULTILINE)
_PYTHON = frozenset({"", "python", "python3", "py", "python2"})
_OWN_FAULTS = {
    "script_error": "the program ended the script",
    "script_signal": "the program crashed the interpreter",
    "memory_limit": "the program used too much memory",
    "time_limit": "the program did not end in time",
    "cpu_limit": "the program used up its CPU time",
}
_SCRIPT = Path(__file__).with_name("sandbox_program.py")


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
        if not programs:
            return Grade(Verdict.UNPARSABLE, "there is no program in the text")
        if any(len(program) > _LONGEST for program in programs):
            return Grade(Verdict.UNPARSABLE, f"the program is longer than {_LONGEST:,} characters")
        # A new word per run: a program that knew it could print a report of its own.
        word = secrets.token_hex(12)
        source = _SCRIPT.read_text(encoding="utf-8")
        # ASCII alone, so no encoding on the way into the sandbox can change a program.
        # The script's text goes along because the child process, too, is started from it.
        call = ", ".join(ascii(part) for part in (word, programs, tests, entry, prompt))
        try:
            seen = await services.call(
                self.tool, {"code": f"_source = {source!a}\nexec(_source)\nmain(_source, {call})\n"}
            )
        except Exception as error:  # whatever breaks here is not a fault of the program
            return Grade(
                Verdict.UNPARSABLE, f"not graded, the sandbox failed: {type(error).__name__}: {shown(str(error))}"
            )
        return _grade(seen, word, programs[0])


def read_programs(text: str, entry: str = "", prompt: str = "") -> list[str]:
    """What may be the program of a text, the likeliest first; the first that can be compiled is meant.

    Args:
        text: everything that was said.
        entry: the function that is tested; of several blocks of code the last that defines it counts.
        prompt: code that the text may continue.
    """
    text = spoken(text).replace("\r\n", "\n")
    if not text.strip():
        return []
    blocks = _blocks(text)
    defines = (
        re.compile(rf"^[ \t]{{0,8}}(?:async )?(?:def|class) {re.escape(entry)}\b", re.MULTILINE) if entry else None
    )
    if blocks:
        # The last block, since models write a draft first, but not one that only shows how to call the function.
        fitting = [block for block in blocks if defines and defines.search(block)]
        text = (fitting or blocks)[-1]
    found = [text]
    if prompt and not (defines and defines.search(text)):
        # A text without the function is taken for its body, as HumanEval's completions are.
        found.insert(0, f"{prompt.rstrip()}\n{text}")
    start = _START.search(text)
    if not blocks and start and start.start():
        found.append(text[start.start() :])
    return found


def _blocks(text: str) -> list[str]:
    """The blocks of Python code between fences; one that is never closed extends to the end."""
    blocks: list[str] = []
    opened: tuple[str, str, int] | None = None
    for match in _FENCE.finditer(text):
        if opened is None:
            opened = (match[1], match[2].lower(), match.end() + 1)
        elif match[1].startswith(opened[0]) and not match[2]:
            if opened[1] in _PYTHON:
                blocks.append(text[opened[2] : match.start()])
            opened = None
    if opened and opened[1] in _PYTHON:
        blocks.append(text[opened[2] :])
    return [block for block in blocks if block.strip()]


def _grade(seen: Observation, word: str, program: str) -> Grade:
    report = _report(seen.content, word)
    if report is None:
        code = seen.error.code if seen.error else ""
        # The script reports whenever it ends normally, so the program must have ended it.
        if seen.ok:
            return Grade(Verdict.WRONG, "the program ended before its tests were done", found=(program,))
        if code in _OWN_FAULTS:
            why = seen.error.message if seen.error else ""
            return Grade(Verdict.WRONG, f"{_OWN_FAULTS[code]}: {shown(why)}", found=(program,))
        why = f"{code}: {seen.error.message}" if seen.error else str(seen.status)
        return Grade(Verdict.UNPARSABLE, f"not graded, the sandbox failed: {shown(why)}", found=(program,))
    if "unread" in report:
        return Grade(Verdict.UNPARSABLE, f"the program is not Python: {shown(str(report['unread']))}", found=(program,))
    if "unfit" in report:
        return Grade(Verdict.UNPARSABLE, f"not graded, {shown(str(report['unfit']), 200)}", found=(program,))
    marks = tuple(bool(passed) for passed in report["passed"])
    values = {"passed": sum(marks) / len(marks)}
    if all(marks):
        reason = "all tests pass" if len(marks) > 1 else "the tests pass"
        return Grade(Verdict.RIGHT, reason, found=(program,), marks=marks, values=values)
    count = f"{sum(marks)} of {len(marks)} tests pass; " if len(marks) > 1 else ""
    return Grade(
        Verdict.WRONG, f"{count}{shown(str(report['trouble']), 200)}", found=(program,), marks=marks, values=values
    )


def _report(content: Any, word: str) -> dict[str, Any] | None:
    """What the script reported; None if it never came to it."""
    stdout = content.get("stdout", "") if isinstance(content, dict) else content
    # What stands before the word was printed by the sandbox or by tests, and is no report.
    line = stdout.rpartition(word)[2] if isinstance(stdout, str) and word in stdout else ""
    try:
        report = json.loads(line.partition("\n")[0])
    except ValueError:
        return None
    return report if isinstance(report, dict) and {"unread", "unfit", "passed"} & {*report} else None


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
