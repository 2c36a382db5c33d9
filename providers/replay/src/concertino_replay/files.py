"""Files of recorded answers, in three forms; the first row of a file shows which one it has.

Own form, one answer in a line, or what is known of a model:

    {"model": "small", "question": "…", "text": "…", "input_tokens": 90, "output_tokens": 41, "correct": true}
    {"model": "small", "prices": {"input": 0.1, "output": 0.4}, "description": "…", "context": 8192}

One question in a line, with the outputs of all models (as RouteLLM's GSM8K responses are kept):

    {"question_id": "…", "question": "…", "gold": "…", "models": {"a": {"output": "…", "correct": true}, …}}

One model in a line, with its results on all tasks (as MINT-Bench's outcomes are kept), and the prompts beside it in
`tasks.jsonl`:

    {"model": "a", "results": [{"task": "…", "task_id": "…", "final": "…", "tokens": {…}, "success": true}, …]}

Invariant: a row that cannot be read is an error with file and line, and never left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from concertino import Prices, UsageError
from concertino.schema import near_names, suggestion

from .questions import normalised
from .recording import VERDICTS, RecordedAnswer, RecordedModel, RecordedQuestion, Recording

_MODEL_KEYS = ("prices", "description", "context")
_OWN = (
    "model",
    "question",
    "id",
    "text",
    "input_tokens",
    "output_tokens",
    "seconds",
    "usd",
    "group",
    "gold",
    "finish_reason",
    *VERDICTS,
    *_MODEL_KEYS,
)
_FORMS = "{'model', 'question' or 'id', 'text'}, {'question', 'models'} or {'model', 'results'}"


class RecordingError(UsageError):
    """A file of recorded answers cannot be read: says the file, the line, what was given, what was expected."""


def read(*paths: str | Path) -> Recording:
    """Read files of recorded answers as one recording.

    Args:
        paths: files, or folders that hold a `pool.jsonl`. A model that several of them name is one model.

    Raises:
        RecordingError: a file is missing or a row of it cannot be read; names file and line.
    """
    if not paths:
        raise RecordingError("no file of recorded answers was given; expected at least one path")
    builder = _Builder()
    for path in map(Path, paths):
        file = path / "pool.jsonl" if path.is_dir() else path
        builder.read(file)
    return Recording(builder.questions, builder.answers, builder.facts, builder.sources)


class _Builder:
    """A recording while it is read."""

    def __init__(self) -> None:
        self.questions: dict[str, RecordedQuestion] = {}
        self.answers: dict[str, dict[str, list[RecordedAnswer]]] = {}
        self.facts: dict[str, RecordedModel] = {}
        self.sources: list[str] = []

    def read(self, file: Path) -> None:
        """Add a file."""
        self.sources.append(file.name if file.name != "pool.jsonl" else f"{file.absolute().parent.name}/{file.name}")
        take: Callable[[Mapping[str, Any], str], None] | None = None
        for where, row in _rows(file):
            if take is None:
                take = self._reader(file, row, where)
            take(row, where)
        if take is None:
            raise RecordingError(f"{file}: it holds no row; expected {_FORMS}")

    def _reader(self, file: Path, row: Mapping[str, Any], where: str) -> Callable[[Mapping[str, Any], str], None]:
        if "models" in row:
            return self._take_question
        if "results" in row:
            tasks = _tasks(file.with_name("tasks.jsonl"))
            return lambda row, where: self._take_model(row, where, tasks)
        if "model" not in row:
            raise RecordingError(f"{where}: the keys are {', '.join(map(str, row)) or 'none'}; expected {_FORMS}")
        return self._take_own

    # -- the three forms -------------------------------------------------------------------------------------------

    def _take_own(self, row: Mapping[str, Any], where: str) -> None:
        for key in row:
            if key not in _OWN:
                hint = suggestion(key, _OWN)
                raise RecordingError(f"{where}: unknown key {key!r}; {hint}")
        model = _text(row, "model", where)
        if "text" not in row and any(key in row for key in _MODEL_KEYS):
            self._take_model_facts(model, row, where)
            return
        text = row.get("question", "")
        if not isinstance(text, str) or not (text.strip() or row.get("id")):
            raise RecordingError(f"{where}: expected a 'question' as text, or an 'id'; got {text!r}")
        key = _text(row, "id", where) if "id" in row else _id_of(text)
        self._ask(RecordedQuestion(key, text, str(row.get("group", "")), str(row.get("gold", ""))), where)
        answer = _answer(row, "text", where)
        self._answer(model, key, answer)

    def _take_model_facts(self, model: str, row: Mapping[str, Any], where: str) -> None:
        prices = row.get("prices")
        try:
            read = None if prices is None else Prices(**prices)
        except (TypeError, UsageError) as error:
            expected = '{"input": 0.1, "output": 0.4}, $ per million tokens'
            raise RecordingError(f"{where}: prices = {prices!r}: {error}; expected {expected}") from error
        context = _number(row, "context", where, whole=True)
        self.facts[model] = RecordedModel(read, str(row.get("description", "")), context)
        self.answers.setdefault(model, {})

    def _take_question(self, row: Mapping[str, Any], where: str) -> None:
        text = _text(row, "question", where)
        key = str(row.get("question_id") or row.get("id") or _id_of(text))
        self._ask(RecordedQuestion(key, text, str(row.get("group", "")), str(row.get("gold", ""))), where)
        models = row.get("models")
        if not isinstance(models, Mapping):
            raise RecordingError(f"{where}: 'models' is {type(models).__name__}; expected outputs by model")
        for model, given in models.items():
            for sample in given if isinstance(given, list) else [given]:
                at = f"{where}, models[{model!r}]"
                if not isinstance(sample, Mapping):
                    raise RecordingError(f"{at} is {type(sample).__name__}; expected an object with 'output'")
                self._answer(model, key, _answer(sample, "output", at))

    def _take_model(self, row: Mapping[str, Any], where: str, tasks: Mapping[str, RecordedQuestion]) -> None:
        model, results = _text(row, "model", where), row.get("results")
        if not isinstance(results, list):
            raise RecordingError(f"{where}: 'results' is {type(results).__name__}; expected a list of results")
        for place, result in enumerate(results):
            at = f"{where}, results[{place}]"
            if not isinstance(result, Mapping):
                raise RecordingError(f"{at} is {type(result).__name__}; expected an object")
            key = f"{result.get('task')}/{result.get('task_id')}"
            if key not in tasks:
                near = near_names(key, list(tasks), limit=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise RecordingError(f"{at}: tasks.jsonl has no task {key!r}{hint}")
            self._ask(tasks[key], at)
            tokens = result.get("tokens") or {}
            if not isinstance(tokens, Mapping):
                raise RecordingError(f"{at}: tokens = {tokens!r}; expected an object with 'prompt_tokens'")
            read = _number(tokens, "prompt_tokens", at, whole=True)
            written = _number(tokens, "completion_tokens", at, whole=True)
            answer = RecordedAnswer(str(result.get("final") or ""), read, written, verdicts=_verdicts(result, at))
            self._answer(model, key, replace(answer, several_turns=True))

    # -- what all of them do ---------------------------------------------------------------------------------------

    def _ask(self, question: RecordedQuestion, where: str) -> None:
        known = self.questions.get(question.id)
        if known is None or (question.text and not known.text):
            self.questions[question.id] = question
        elif question.text and normalised(question.text) != normalised(known.text):
            shown = f"{question.text[:60]!r}; before it was {known.text[:60]!r}"
            raise RecordingError(f"{where}: the question {question.id!r} is {shown}; one id names one question")

    def _answer(self, model: str, question: str, answer: RecordedAnswer) -> None:
        self.answers.setdefault(model, {}).setdefault(question, []).append(answer)


def _answer(row: Mapping[str, Any], text: str, where: str) -> RecordedAnswer:
    """An answer, with the fields beside its text."""
    return RecordedAnswer(
        _text(row, text, where, empty=True),
        _number(row, "input_tokens", where, whole=True),
        _number(row, "output_tokens", where, whole=True),
        _number(row, "seconds", where),
        _number(row, "usd", where),
        _verdicts(row, where),
        str(row.get("finish_reason", "stop")),
    )


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file of JSON Lines, each with where it stands."""
    try:
        # `splitlines` would also break at U+2028, which JSON allows inside a text.
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        raise RecordingError(f"{file}: file not found; expected a file of JSON Lines") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RecordingError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordingError(f"{where}: invalid JSON: {error}; expected one object in each line") from None
        if not isinstance(row, dict):
            raise RecordingError(f"{where}: {type(row).__name__} {line[:40]!r}; expected an object")
        yield where, row


def _tasks(file: Path) -> dict[str, RecordedQuestion]:
    """The prompts of tasks by `task/task_id`."""
    tasks = {}
    for where, row in _rows(file):
        group, number = _text(row, "task", where), _text(row, "task_id", where)
        key = f"{group}/{number}"
        tasks[key] = RecordedQuestion(key, _text(row, "prompt", where), group, str(row.get("reference", "")))
    return tasks


def _id_of(text: str) -> str:
    """An id for a question that has none: the same wherever the question stands."""
    return "q" + hashlib.sha256(normalised(text).encode("utf-8", "surrogatepass")).hexdigest()[:10]


def _text(row: Mapping[str, Any], key: str, where: str, *, empty: bool = False) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not (value or empty):
        raise RecordingError(f"{where}: {key} = {value!r}; expected a text")
    return value


def _number(row: Mapping[str, Any], key: str, where: str, *, whole: bool = False) -> Any:
    value = row.get(key)
    if value is None:
        return None
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < float("inf"):
        expected = "a whole number" if whole else "a number"
        raise RecordingError(f"{where}: {key} = {value!r}; expected {expected}, 0 or more")
    return value


def _verdicts(row: Mapping[str, Any], where: str) -> dict[str, bool | None]:
    found = {name: row[name] for name in VERDICTS if name in row}
    for name, value in found.items():
        if value is not None and not isinstance(value, bool):
            raise RecordingError(f"{where}: {name} = {value!r}; expected true, false or null")
    return found
