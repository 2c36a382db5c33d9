"""The grader of tasks with whole-number answers: right, wrong or unparsable, and why.

A solver's text is read as all graders read it (`graders.answers`): its thoughts and what tools wrote into it do not
count. An answer is looked for in the last `<answer>…</answer>` if there is one, else in the whole text; there in
`\\boxed{}`, else in lines `Problem 2: 7`, else, for one answer, in "the answer is 7" or in an `<answer>` that is a
number alone.

The invariants: several answers need exactly as many boxes as there are answers, so guessing twice never pays; with one
answer the last box counts. What cannot be read is *unparsable*, never wrong, and what can be read is right only if
every answer is. A number is compared as it stands: 30 is not 7, though they agree modulo 23.
"""

from __future__ import annotations

import re

from concertino_bench.graders import answers, base
from concertino_bench.tasks.grade import Grade, Verdict, text_grader
from concertino_bench.tasks.task import Task

_LINE = re.compile(r"[^\w\n]{0,8}Problem (\d{1,4})[^\w\n]{0,8}?: *[^\w\n]{0,8}?(-?\d[\d,]*)[^\w\n]{0,8}")
_SAID = re.compile(r"\banswer(?: is|:)\W{0,8}?(-?\d[\d,]*)", re.I)
_NUMBER = re.compile(r"-?(?:\d{1,40}|\d{1,3}(?:,\d{3}){1,12})(?:\.0*)?")


@text_grader("masbench", "masbench")
def grade(task: Task, text: str) -> Grade:
    """Grade a solver's text.

    Args:
        task: a task whose answers are whole numbers.
        text: everything the solver said last.

    Raises:
        ValueError: an answer of the task is not a whole number.
    """
    expected = tuple(_expected(task, answer) for answer in task.answers)
    text = answers.spoken(text)
    said = _last_answer(text)
    place = text if said is None else said
    shown = [box.text for box in answers.boxes(place)]
    found, trouble = _choose(shown, place, len(expected), in_answer=said is not None)
    if trouble:
        # The wrong number of answers is wrong, since guessing must not pay; no answer at all is not readable.
        verdict = Verdict.WRONG if found else Verdict.UNPARSABLE
        return Grade(verdict, trouble, task.answers, found)
    numbers = [_number(item) for item in found]
    unread = next((item for item, number in zip(found, numbers, strict=True) if number is None), None)
    if unread is not None:
        return Grade(Verdict.UNPARSABLE, f"{base.shown(unread)!r} is not a whole number", task.answers, found)
    marks = tuple(number == right for number, right in zip(numbers, expected, strict=True))
    verdict = Verdict.RIGHT if all(marks) else Verdict.WRONG
    return Grade(verdict, _reason(marks, found, task.answers), task.answers, found, marks)


def _last_answer(text: str) -> str | None:
    """What stands in the last `<answer>` that is closed."""
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, max(end, 0))
    return text[start + len("<answer>") : end] if start >= 0 else None


def _choose(shown: list[str], place: str, count: int, *, in_answer: bool) -> tuple[tuple[str, ...], str]:
    """The answers to compare, and what is wrong with their number."""
    if shown:
        if count == 1:
            # With one answer asked for, earlier boxes are intermediate results.
            return (shown[-1],), ""
        if len(shown) != count:
            return tuple(shown), f"{len(shown)} {'box' if len(shown) == 1 else 'boxes'}, expected {count}"
        return tuple(shown), ""
    lines = [match.groups() for line in place.splitlines() if (match := _LINE.fullmatch(line.rstrip()))]
    if lines:
        if [int(number) for number, _ in lines] != list(range(1, count + 1)):
            return tuple(value for _, value in lines), f"lines for other problems than 1 to {count}, each once"
        return tuple(value for _, value in lines), ""
    if count == 1:
        if in_answer and place.strip():
            return (place.strip(),), ""
        if said := _SAID.findall(place):
            return (said[-1],), ""
    return (), "no \\boxed{} was found"


def _number(text: str) -> int | None:
    """A whole number as models write it: `7`, `7.0`, `$7$`, `1,234,567`, `x = 7`, `\\text{7}`."""
    text = re.sub(r"\\(?:text|mathbf|mathrm|textbf)\s*\{([^{}]*)\}", r"\1", text)
    text = text.rpartition("=")[2].replace("{,}", ",").strip(" \n\t$*.").replace("\\,", "")
    if not _NUMBER.fullmatch(text):
        return None
    return int(text.partition(".")[0].replace(",", ""))


def _expected(task: Task, answer: str) -> int:
    number = _number(answer)
    if number is None:
        raise ValueError(f"{task.id}: {answer!r} is not a whole number; this grader is for tasks of the kind masbench")
    return number


def _reason(marks: tuple[bool, ...], found: tuple[str, ...], answers: tuple[str, ...]) -> str:
    if all(marks):
        return "the answer is right" if len(marks) == 1 else f"all {len(marks)} answers are right"
    first = marks.index(False)
    which = "" if len(marks) == 1 else f"answer {first + 1} of {len(marks)}: "
    more = f"; {sum(marks)} of {len(marks)} are right" if len(marks) > 1 else ""
    return f"{which}{found[first]}, expected {answers[first]}{more}"
