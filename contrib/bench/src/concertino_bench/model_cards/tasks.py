"""Tasks of model cards: a file of questions with known answers, the included tasks, and samples of them.

A task file is JSON Lines, one task a line:

    {"question": "What is 6 times 7?", "answer": 42, "kind": "arithmetic"}
    {"question": "Which is a fruit? A) pear B) pump", "answer": "A", "kind": "words", "grader": "choice"}

The invariant: a task can be graded. Its answer fits its grader, and its kind is a plain word or two, because kinds
stand in texts that an orchestrator reads.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from concertino import UsageError
from concertino.schema import suggestion

from concertino_bench.graders.choice import ChoiceGrader
from concertino_bench.graders.numeric import Numeric, numbers
from concertino_bench.graders.verbatim import Contains, Verbatim
from concertino_bench.tasks.grade import Grader, TextGrader
from concertino_bench.tasks.task import Task

GRADERS: dict[str, TextGrader] = {
    "exact": Verbatim(),
    "number": Numeric(),
    "contains": Contains(),
    "choice": ChoiceGrader(),
}
"""How an answer is compared with the known one, by the word in a task file."""

_KEYS = ("question", "answer", "kind", "grader")
_KIND = re.compile(r"\w[\w /&+-]{0,39}")
_BUILT_IN = "tasks.jsonl"


def make_task(question: str, answer: str, kind: str, grader: str = "exact") -> Task:
    """A task of a model card.

    Args:
        question: what the model is asked, complete in itself.
        answer: the known answer, as a text.
        kind: what it takes, such as `arithmetic`; figures are given by kind.
        grader: `exact` (the same text, apart from case, spaces and quotes; JSON as a value), `number` (the same
            number), `contains` (the text occurs, as whole words), `choice` (the letter of an option).

    Raises:
        UsageError: a field is empty or wrong, or the answer does not fit the grader.
    """
    for name, value in (("question", question), ("answer", answer), ("kind", kind)):
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{name}={value!r}: expected a text that is not empty")
    if grader not in GRADERS:
        raise UsageError(f"grader={grader!r}: expected one of {', '.join(GRADERS)}")
    if grader == "number" and len(numbers(answer)) != 1:
        raise UsageError(f"answer={answer!r}: the grader 'number' needs one number, such as 12.5")
    if grader == "choice" and not re.fullmatch(r"[A-Za-z]", answer):
        raise UsageError(f"answer={answer!r}: the grader 'choice' needs the letter of an option, such as B")
    number = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    task = Task(f"model-card/{number}", question, (answer,), kind, metadata={"grader": GRADERS[grader].name})
    return _checked_kind(task)


def grader_of(task: Task, graders: Sequence[Grader]) -> TextGrader:
    """Who grades a task: the grader that it names, else that of its kind.

    Raises:
        UsageError: there is none, it needs more than a text, or it cannot grade this task.
    """
    wanted = task.metadata.get("grader", "")
    found = next((each for each in graders if each.name == wanted or (not wanted and task.kind in each.kinds)), None)
    if not isinstance(found, TextGrader):
        raise UsageError(
            f"{task.id}: {wanted or task.kind!r} names no grader of texts; put the name of one into "
            f"metadata['grader'], such as {', '.join(grader.name for grader in GRADERS.values())}"
        )
    try:
        found.check(task)
    except ValueError as error:
        raise UsageError(f"the grader {found.name} cannot grade {task.id}: {error}") from error
    return found


def load_tasks(path: str | Path | None = None) -> tuple[Task, ...]:
    """Read a task file, or the included tasks: 40 in 8 kinds.

    Args:
        path: a JSON Lines file with `question`, `answer`, `kind` and maybe `grader` on each line. Without a grader, an
            answer that is written as a JSON number is graded as `number`, any other one as `exact`.

    Raises:
        UsageError: the file cannot be read, or a line is not a task; names file, line and what was expected.
    """
    if path is None:
        text = resources.files(__package__).joinpath(_BUILT_IN).read_text(encoding="utf-8")
        return _read(_BUILT_IN, text)
    try:
        # Editors on Windows put a byte order mark in front.
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read: {why}; expected a JSONL file of tasks, in UTF-8") from error
    return _read(str(path), text)


def draw_tasks(tasks: Sequence[Task], count: int, seed: int = 0) -> tuple[Task, ...]:
    """Draw a sample that holds the kinds as evenly as they come.

    The sample of a smaller `count` is a part of the sample of a larger one, so that enlarging it wastes no answer.

    Args:
        count: how many, 1 to all of them.
        seed: another seed draws another sample.

    Raises:
        UsageError: `count` is out of range.
    """
    if not 1 <= count <= len(tasks):
        raise UsageError(f"a sample of {count} tasks: expected 1 to {len(tasks)}, as many as there are")
    # A text as seed: the same draw in every process, and none that a caller's own `Random(seed)` repeats.
    rng = random.Random(f"concertino sample {seed}")
    kinds: dict[str, list[Task]] = {}
    for task in tasks:
        kinds.setdefault(task.kind, []).append(task)
    piles = list(kinds.values())
    rng.shuffle(piles)
    for pile in piles:
        rng.shuffle(pile)
    longest = max(map(len, piles))
    # Kinds in turn, so a smaller sample is the beginning of a larger one.
    in_turn = [pile[place] for place in range(longest) for pile in piles if place < len(pile)]
    return tuple(in_turn[:count])


def check_tasks(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Refuse a set that cannot be used.

    Raises:
        UsageError: it is empty, or a question occurs twice, so that one answer would count twice.
    """
    if not tasks:
        raise UsageError("there are no tasks; give at least one")
    seen: set[str] = set()
    for task in tasks:
        if not isinstance(task, Task):
            raise UsageError(f"{task!r} is a {type(task).__name__}; expected a Task")
        if task.question in seen:
            raise UsageError(f"the question {_short(task.question)} occurs twice; each may count once")
        seen.add(_checked_kind(task).question)
    return tuple(tasks)


def _checked_kind(task: Task) -> Task:
    if not _KIND.fullmatch(task.kind):
        raise UsageError(f"kind={task.kind!r}: expected a word or a few, at most 40 letters, digits or any of ' /&+-'")
    return task


def _read(name: str, text: str) -> tuple[Task, ...]:
    tasks: list[Task] = []
    places: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{name}, line {number}"
        task = _read_line(place, line)
        if task.question in places:
            raise UsageError(f"{place}: the question of line {places[task.question]} again; each may count once")
        places[task.question] = number
        tasks.append(task)
    if not tasks:
        raise UsageError(f"{name}: it has no tasks; expected one JSON object per line")
    return tuple(tasks)


def _read_line(place: str, line: str) -> Task:
    try:
        data = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{place}: not JSON: {error}; expected one object, on one line") from None
    if not isinstance(data, dict):
        raise UsageError(f"{place}: {_short(data)}; expected an object with question, answer and kind")
    for unknown in (key for key in data if key not in _KEYS):
        hint = suggestion(unknown, _KEYS)
        raise UsageError(f"{place}: unknown key {unknown!r}; {hint}")
    for missing in (key for key in _KEYS[:3] if key not in data):
        raise UsageError(f"{place}: {missing!r} is missing; expected question, answer and kind")
    answer = data["answer"]
    is_number = isinstance(answer, (int, float)) and not isinstance(answer, bool)
    given = {"grader": "number" if is_number else "exact", **data, "answer": str(answer) if is_number else answer}
    try:
        return make_task(**given)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
