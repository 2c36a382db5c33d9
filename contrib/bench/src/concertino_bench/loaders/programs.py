"""HumanEval and MBPP: programs that have to pass tests.

A task's metadata holds `prompt` (code that the solver continues; empty for MBPP's own rows), `entry_point`, `tests`
(code to be run behind the solution; it fails by raising), `language` and `solution`, the reference. Nothing is run
here: that is for a sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from concertino_bench.tasks.task import Task

from .rows import DataRow
from .streaming import id_of, rest, split_of, stream

_COMPLETE = "Complete this Python function. Answer with the whole program, imports included, in one code block."
_WRITE = "Write a Python program. Answer with the whole program, imports included, in one code block."

_CALLED = re.compile(r"(\w+)\s*\(")
_DEFINED = re.compile(r"^(?:def|class)\s+(\w+)", re.M)


def humaneval(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "code".

    Args:
        path: rows with `task_id`, `prompt`, `entry_point`, `test` and maybe `canonical_solution`.
    """
    return stream(path, lambda row: _completion("humaneval", row, split))


def mbpp(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "code".

    Args:
        path: rows with `task_id`, `text` (or `prompt`), `code`, `test_list` and maybe `test_setup_code`; or rows in the
            shape of HumanEval, with `name`.
    """
    return stream(path, lambda row: _from_asserts(row, split) if "test_list" in row.data else _mbpp(row, split))


def _mbpp(row: DataRow, split: str) -> Task:
    row.needed("test_list", "test")
    return _completion("mbpp", row, split)


def _completion(name: str, row: DataRow, split: str) -> Task:
    prompt, entry = row.text("prompt"), _entry_point(row)
    tests = row.text("test")
    # HumanEval's tests only define `check`; its harness calls it.
    if "def check(" in tests and not re.search(r"^(?:check|test_check)\(", tests, re.M):
        tests = f"{tests.rstrip()}\n\ncheck({entry})\n"
    return _task(name, row, split, f"{_COMPLETE}\n\n```python\n{prompt.strip()}\n```", prompt, entry, tests)


def _from_asserts(row: DataRow, split: str) -> Task:
    asserts = row.texts("test_list")
    if not asserts:
        row.wrong("test_list", "at least one assert")
    setup = row.text("test_setup_code", default="") or "\n".join(row.texts("test_imports"))
    # MBPP's set-up code and solutions hold \r\n.
    tests = "\n".join(filter(None, [setup.replace("\r\n", "\n").strip(), *asserts])) + "\n"
    entry = _tested(row, asserts)
    listed = "\n".join(asserts)
    question = f"{row.text('text', 'prompt')}\n\n{_WRITE} It has to pass:\n\n```python\n{listed}\n```"
    return _task("mbpp", row, split, question, "", entry, tests)


def _task(name: str, row: DataRow, split: str, question: str, prompt: str, entry: str, tests: str) -> Task:
    metadata = {"prompt": prompt, "entry_point": entry, "tests": tests, "language": "python"}
    solution = row.column("canonical_solution", "code", "solution")
    if solution:
        metadata["solution"] = row.text(solution).replace("\r\n", "\n")
    return Task(
        id_of(name, row, "task_id", "name"),
        question,
        (),
        "code",
        split=split_of(row, split),
        metadata=metadata | rest(row, "challenge_test_list"),
    )


def _entry_point(row: DataRow) -> str:
    entry = row.text("entry_point")
    if not entry.isidentifier():
        row.wrong("entry_point", "the name of a function")
    return entry


def _tested(row: DataRow, asserts: list[str]) -> str:
    """The function that the asserts call: the one that the reference defines, the last if there are several."""
    called = {name for text in asserts for name in _CALLED.findall(text)}
    defined = _DEFINED.findall(row.text("code"))
    found: list[str] = [name for name in defined if name in called]
    if not found:
        told = ", ".join(defined) or "there is none"
        raise row.error(f"test_list calls {', '.join(sorted(called))}; expected a function of 'code' ({told})")
    # Helpers come first in MBPP's solutions, and an assert may call them too.
    return found[-1]
