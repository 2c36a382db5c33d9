r"""Several answers at once, counted strictly: right only if every one is given and nothing else.

The answers are the boxes (`\boxed{7} \boxed{12}`), else what the one marked answer or the whole text lists: a JSON
list, numbered lines, lines, or one line parted by semicolons or commas. The invariant: there have to be exactly as many
as the task has, so that naming more than asked for never pays.

A task may say `metadata["ordered"] = False` where any order will do, `metadata["keys"]` where each answer has a name (a
JSON object or lines `name: answer`, in any order), and `metadata["aliases"]`, for each answer a list of further texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from concertino_bench.tasks.grade import Grade, TextGrader, Verdict
from concertino_bench.tasks.task import Task

from .answer_keys import among
from .answers import bare, boxes, final_answer, marked, spoken
from .base import json_of, shown
from .exact_match import normalise
from .matching import match

_ITEM = re.compile(r"[ \t]{0,8}(?:[-*•]|\(?\d{1,3}[.):])[ \t]+(.+)")
# A comma before three digits marks thousands and parts no answers.
_PART = re.compile(r"[ \t]{0,4},[ \t]{1,4}and[ \t]|,(?!\d{3}(?!\d))|[ \t]and[ \t]")
# Characters of a list of answers; each is compared with each where any order will do.
_LONGEST = 20_000


class MultiAnswer(TextGrader):
    """Right if all answers are given, in order, and no others."""

    name = "multi-answer"
    kinds = ("answers",)

    def judge(self, task: Task, text: str) -> Grade:
        """Grade a text; the marks say which answers were right."""
        accepted = _accepted(task)
        keys = task.metadata.get("keys")
        if keys is not None:
            return _by_key(task, text, accepted, keys)
        found = read_answers(text)
        if not found:
            return Grade(Verdict.UNPARSABLE, "there is no answer in the text", task.answers)
        # Before any comparison: a list of guesses must not earn marks.
        if len(found) != len(accepted):
            reason = f"{len(found)} {'answer' if len(found) == 1 else 'answers'}, expected {len(accepted)}"
            return Grade(Verdict.WRONG, reason, task.answers, tuple(found))
        if task.metadata.get("ordered", True):
            marks = tuple(among(one, texts) for one, texts in zip(found, accepted, strict=True))
        else:
            pairs = match([[among(one, texts) for one in found] for texts in accepted])
            marks = tuple(pair is not None for pair in pairs)
        return _graded(task, found, marks)


def read_answers(text: str) -> list[str]:
    """The answers that a text lists."""
    said = spoken(text)
    places = marked(said)
    outer = next((place for place in reversed(places) if place.marker != "\\boxed{}"), None)
    # Boxes outside of an explicit answer tag are working.
    shown_boxes = boxes(outer.text if outer else said)
    if len(shown_boxes) > 1:
        return [bare(box.text) for box in shown_boxes]
    return _listed(shown_boxes[0].text if shown_boxes else outer.text if outer else final_answer(text).text)


def _listed(text: str) -> list[str]:
    text = text.strip()[:_LONGEST]
    data = _json(text)
    if isinstance(data, list):
        return [bare(item) if isinstance(item, str) else json.dumps(item) for item in data]
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        numbered = [item[1] for line in lines if (item := _ITEM.fullmatch(line.rstrip()))]
        return [bare(line) for line in (numbered or lines)]
    parts = text.split(";") if ";" in text else _PART.split(text)
    return [bare(part) for part in parts if bare(part)]


def _by_key(task: Task, text: str, accepted: Sequence[Sequence[str]], keys: Any) -> Grade:
    if isinstance(keys, str) or len(keys) != len(accepted):
        raise ValueError(
            f"{task.id}: metadata['keys'] is {keys!r}; expected {len(accepted)} names, one for each answer"
        )
    names = [normalise(str(key)) for key in keys]
    given = _named(final_answer(text).text, names)
    if not given:
        return Grade(Verdict.UNPARSABLE, "there are no lines `name: answer`, and no JSON object", task.answers)
    found = tuple(given.get(name, "") for name in names)
    marks = tuple(among(one, texts) for one, texts in zip(found, accepted, strict=True))
    extra = [name for name in given if name not in names]
    # Naming more than was asked for must not pay, even where all that was asked is right.
    if extra and all(marks):
        return Grade(Verdict.WRONG, f"an answer for {shown(extra[0])!r}, which was not asked", task.answers, found)
    return _graded(task, found, marks)


def _named(text: str, names: Sequence[str]) -> dict[str, str]:
    text = text.strip()[:_LONGEST]
    data = _json(text)
    if isinstance(data, Mapping):
        return {normalise(key): value if isinstance(value, str) else json.dumps(value) for key, value in data.items()}
    lines = text.splitlines() if "\n" in text else text.split(";")
    return dict(_named_line(line, names) for line in lines if ":" in line)


def _named_line(line: str, names: Sequence[str]) -> tuple[str, str]:
    """Name and answer of a line; a name that is asked for may hold colons; the longest is meant."""
    parts = line.split(":")
    splits = [(normalise(":".join(parts[:at])), bare(":".join(parts[at:]))) for at in range(1, min(len(parts), 8))]
    return next((split for split in reversed(splits) if split[0] in names), splits[0])


def _json(text: str) -> Any:
    if not text.startswith(("[", "{")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return json_of(text)


def _accepted(task: Task) -> list[tuple[str, ...]]:
    if not task.answers:
        raise ValueError(f"{task.id} has no answers; the grader `multi-answer` needs one for each question asked")
    aliases = task.metadata.get("aliases") or [()] * len(task.answers)
    if len(aliases) != len(task.answers) or any(isinstance(texts, str) for texts in aliases):
        raise ValueError(
            f"{task.id}: metadata['aliases'] is {aliases!r}; expected {len(task.answers)} lists, one for each answer"
        )
    return [(answer, *texts) for answer, texts in zip(task.answers, aliases, strict=True)]


def _graded(task: Task, found: Sequence[str], marks: tuple[bool, ...]) -> Grade:
    if all(marks):
        reason = f"all {len(marks)} answers are right" if len(marks) > 1 else "the answer is right"
        return Grade(Verdict.RIGHT, reason, task.answers, tuple(found), marks)
    first = marks.index(False)
    reason = f"answer {first + 1} of {len(marks)}, {shown(task.answers[first])!r}, is not given; {sum(marks)} are right"
    return Grade(Verdict.WRONG, reason, task.answers, tuple(found), marks)
