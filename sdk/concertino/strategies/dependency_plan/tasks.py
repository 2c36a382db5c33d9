"""The task list of a `<plan>`: sub-tasks with dependencies, checked.

    T1: Find A's birth year
    - Dependencies: none
    T2: Compare
    - Dependencies: T1

`Task 1`, `Task1` and `T1` are the same id. Dependencies may stand on the task's own line. Invariant: a list without a
fault has different ids, only known dependencies, and no cycle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from concertino.strategies.base.format_issues import FormatIssues, shown, suggestion

_TASK = re.compile(
    r"[ \t>#*+\-]{0,12}+(?:Task\s?ID\s?:\s?)?T(?:ask)?[ \t_]?(\d{1,4})\b[ \t*]{0,4}+[:.)\-–—]", re.IGNORECASE
)
_NEEDS = re.compile(r"(?:\b|^)Depend(?:encies|ency|s on)?[ \t*]{0,4}+[:=]", re.IGNORECASE)
_ID = re.compile(r"T(?:ask)?[ \t_]?(\d{1,4})\b", re.IGNORECASE)
_NONE = re.compile(r"none|n/a|-|–|\[\]|nothing|no|null", re.IGNORECASE)
MAX_TASKS = 64
MAX_TEXT = 2000


class PlanTask(NamedTuple):
    """One sub-task.

    Attributes:
        id: `T1`, `T2`, …
        text: what is to be found.
        depends: ids of the tasks that must be done before.
    """

    id: str
    text: str
    depends: tuple[str, ...] = ()


class _PlanLine(NamedTuple):
    start: int
    text: str


def read_tasks(text: str, start: int, issues: FormatIssues) -> tuple[PlanTask, ...]:
    """The tasks of a plan.

    Args:
        text: what stands inside `<plan>`.
        start: where that begins in the whole text.
        issues: where faults go.
    """
    tasks: list[PlanTask] = []
    places: list[tuple[int, int]] = []
    told: list[bool] = []
    for line in _lines(text, start):
        found = _TASK.match(line.text)
        # Searched behind the id, since models also put the dependencies on the task's own line.
        needs = _NEEDS.search(line.text, found.end() if found else 0)
        if found:
            if len(tasks) >= MAX_TASKS:
                words = f"a plan has at most {MAX_TASKS} tasks; merge some"
                issues.refuse("too_many_tasks", words, line.start, line.start + len(line.text))
                return ()
            inner = line.text[found.end() : needs.start() if needs else None].strip(" \t-*(")
            tasks.append(PlanTask(f"T{int(found.group(1))}", inner))
            places.append((line.start, line.start + len(line.text)))
            told.append(False)
        if needs and tasks:
            depends = _depends(line, needs.end(), issues)
            tasks[-1] = tasks[-1]._replace(depends=tuple(dict.fromkeys((*tasks[-1].depends, *depends))))
            told[-1] = True
        elif needs:
            words = "dependencies before the first task; write T1: ... above them"
            issues.refuse("bad_plan_line", words, line.start, line.start + len(line.text))
        elif not found and tasks and len(tasks[-1].text) < MAX_TEXT:
            tasks[-1] = tasks[-1]._replace(text=f"{tasks[-1].text} {line.text.strip()}".strip()[:MAX_TEXT])
    for task, place, known in zip(tasks, places, told, strict=True):
        if not known:
            issues.mend("no_dependencies", f"{task.id} lists no dependencies; taken as none", *place)
    if not tasks:
        issues.refuse(
            "empty_plan", "the plan holds no task; write T1: ... and - Dependencies: none", start, start + len(text)
        )
    _check(tasks, places, issues)
    return tuple(tasks)


def _lines(text: str, start: int) -> list[_PlanLine]:
    lines, position = [], 0
    for line in text.splitlines(keepends=True):
        if not line.isspace():
            lines.append(_PlanLine(start + position, line.rstrip("\r\n")))
        position += len(line)
    return lines


def _depends(line: _PlanLine, begin: int, issues: FormatIssues) -> list[str]:
    """The ids of a list of dependencies."""
    rest = line.text[begin:].strip(" \t*.()[]")
    ids = [f"T{int(found.group(1))}" for found in _ID.finditer(rest)]
    if not ids and rest and not _NONE.match(rest):
        # Bare numbers (`Dependencies: 1, 2`) count only where no id with a T is written.
        ids = [f"T{int(number)}" for number in re.findall(r"\b\d{1,4}\b", rest)]
    if not ids and rest and not _NONE.match(rest):
        words = f"{shown(rest)} names no task; write Dependencies: none, or T1, T2"
        issues.refuse("bad_plan_line", words, line.start + begin, line.start + len(line.text))
    return ids[:MAX_TASKS]


def _check(tasks: Sequence[PlanTask], places: Sequence[tuple[int, int]], issues: FormatIssues) -> None:
    known: dict[str, tuple[str, ...]] = {}
    for task, place in zip(tasks, places, strict=True):
        if task.id in known:
            issues.refuse("duplicate_task", f"{task.id} is written twice; number the tasks", *place)
        known.setdefault(task.id, task.depends)
    for task, place in zip(tasks, places, strict=True):
        for other in task.depends:
            if other == task.id:
                issues.refuse("plan_cycle", f"{task.id} depends on itself; remove it from its dependencies", *place)
            elif other not in known:
                words = f"{task.id} depends on {other}, which is not a task; {suggestion(other, known.keys())}"
                issues.refuse("unknown_dependency", words, *place)
    left = dict(known)
    # Quadratic, and at most 64 tasks.
    while ready := [name for name, needs in left.items() if not any(other in left for other in needs)]:
        for name in ready:
            del left[name]
    if left and not issues.faults:
        first = next(place for task, place in zip(tasks, places, strict=True) if task.id in left)
        words = f"the tasks {', '.join(left)} wait for each other; remove a dependency"
        issues.refuse("plan_cycle", words, *first)


def write_tasks(tasks: Sequence[PlanTask]) -> str:
    """The tasks as the inside of `<plan>`; `read_tasks` reads them back."""
    lines = []
    for task in tasks:
        lines += [f"{task.id}: {' '.join(task.text.split())}", f"- Dependencies: {', '.join(task.depends) or 'none'}"]
    return "\n".join(lines)
