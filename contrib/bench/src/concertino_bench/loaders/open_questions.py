"""Questions with short answers: GPQA, SimpleQA, FRAMES, HLE, OlympiadBench, and those of LLMCompiler.

SimpleQA, FRAMES and HLE are published with a model as judge: give `--grader judge-simpleqa`, `judge-frames` or
`judge-hle` and bind the role `judge` to compare with published figures. Without it an answer has to equal the gold
text, after normalisation.

The invariant: what a model cannot be shown, such as an image, is left out with a warning, never asked without it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from concertino_bench.tasks.task import Task

from .choices import lettered_question
from .rows import DataRow
from .streaming import DataWarning, Make, id_of, rest, split_of, stream
from .tool_benchmarks import shuffled

# -- GPQA --------------------------------------------------------------------------------------------------------------

_WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def gpqa(*, path: str | Path, seed: int = 0, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "choice"; the four options stand in an order that `seed` draws for each question.

    Args:
        path: rows with `Question`, `Correct Answer` and `Incorrect Answer 1` to `3`, such as `gpqa_diamond.csv`.
        seed: another one gives another order.
    """
    return stream(path, lambda row: _gpqa(row, seed, split))


def _gpqa(row: DataRow, seed: int, split: str) -> Task:
    name, stem = id_of("gpqa", row, "Record ID"), row.text("Question").strip()
    options = [row.plain(column).strip() for column in ("Correct Answer", *_WRONG)]
    if len(set(options)) < len(options):
        raise row.error("two options are the same text; expected four that differ: correct the row")
    order = shuffled(options, name, seed)
    question, letter = lettered_question(stem, order, order.index(options[0]))
    kept = {"domain": "High-level domain", "subdomain": "Subdomain"}
    metadata = {"stem": stem, "choices": order} | {
        key: row.data[column] for key, column in kept.items() if row.column(column)
    }
    return Task(name, question, (letter,), "choice", split=split_of(row, split), metadata=metadata)


# -- short answers -----------------------------------------------------------------------------------------------------


def simpleqa(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "text".

    Args:
        path: rows with `problem` and `answer`, such as `simple_qa_test_set.csv`.
    """

    def make(row: DataRow) -> Task:
        return _short("simpleqa", row, "problem", "answer", split, rest(row, "metadata"))

    return stream(path, make)


def frames(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "text"; the metadata has the `links` of the pages that answer a question.

    Args:
        path: rows with `Prompt` and `Answer`, such as `test.tsv`.
    """

    def make(row: DataRow) -> Task:
        links = [value for column, value in row.data.items() if column.startswith("wikipedia_link_") and value]
        return _short("frames", row, "Prompt", "Answer", split, {"links": links} | rest(row, "reasoning_types"))

    return stream(path, make)


def _short(name: str, row: DataRow, asked: str, answer: str, split: str, metadata: dict[str, Any]) -> Task:
    return Task(
        id_of(name, row, "id", "original_index"),
        row.text(asked).strip(),
        (row.plain(answer).strip(),),
        "text",
        split=split_of(row, split),
        metadata={"aliases": []} | metadata,
    )


# -- HLE ---------------------------------------------------------------------------------------------------------------


def hle(*, path: str | Path, confidence: bool = False, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "choice" or "text". Questions with an image are left out, with a warning.

    Args:
        path: rows with `question`, `answer` and `answer_type` (`multipleChoice`, whose options stand in the question,
            or `exactMatch`), such as `test-00000-of-00001.parquet`.
        confidence: also ask how sure the answer is, in percent.
    """
    return stream(path, _leaving_out(_hle(split, confidence), ("image",), "a question with an image"))


def with_confidence(task: Task) -> Task:
    """A task that also asks how sure the answer is; graders see the question alone."""
    ask = "Say last how sure you are that your answer is right, in percent, such as: Confidence: 60 %"
    return replace(task, asked=f"{task.question}\n\n{ask}")


def _hle(split: str, confidence: bool) -> Make:
    def make(row: DataRow) -> Task:
        answer, how = row.plain("answer").strip(), row.text("answer_type")
        if how not in ("multipleChoice", "exactMatch"):
            row.wrong("answer_type", "'multipleChoice' or 'exactMatch'")
        if how == "multipleChoice" and (len(answer) != 1 or answer not in ascii_uppercase):
            row.wrong("answer", "the letter of an option")
        kind = "choice" if how == "multipleChoice" else "text"
        metadata = ({"aliases": []} if kind == "text" else {}) | rest(row, "category", "raw_subject", "rationale")
        name, question = id_of("hle", row, "id"), row.text("question").strip()
        task = Task(name, question, (answer,), kind, split=split_of(row, split), metadata=metadata)
        return with_confidence(task) if confidence else task

    return make


def _leaving_out(make: Make, columns: tuple[str, ...], what: str) -> Make:
    """A maker that leaves out the rows in which one of these columns holds something, with one warning."""
    warned = False

    def chosen(row: DataRow) -> Any:
        nonlocal warned
        if not any(row.data.get(column) for column in columns):
            return make(row)
        if not warned:
            warnings.warn(f"{row.place}: {what}; it and further ones are left out", DataWarning, stacklevel=3)
            warned = True
        return None

    return chosen


# -- OlympiadBench -----------------------------------------------------------------------------------------------------

_IMAGES = tuple(f"image_{number}" for number in range(1, 10))


def olympiadbench(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "math". Proofs, and problems with images, are left out, with a warning.

    Several answers are asked for as one list, in any order, as the file has them. The unit of an answer is in the
    question, and a tolerance that the file names is `error` in the metadata; the grader does not use it.

    Args:
        path: rows with `question`, `final_answer` and maybe `context`, `unit`, `is_multiple_answer`, such as
            `OE_TO_maths_en_COMP.json`.
    """
    return stream(path, _leaving_out(_olympiad(split), _IMAGES, "a problem with an image"))


def _olympiad(split: str) -> Make:
    warned = False

    def make(row: DataRow) -> Task | None:
        nonlocal warned
        if row.column("final_answer") is None:
            if "final_answer" not in row.data:
                row.needed("final_answer")  # says that it is missing
            if not warned:
                text = "a problem without a final answer, which is a proof; it and further ones are left out"
                warnings.warn(f"{row.place}: {text}", DataWarning, stacklevel=3)
                warned = True
            return None
        answers = [_undollared(text) for text in row.plains("final_answer")]
        unit = row.text("unit", default="").strip()
        parts = [row.text("context", default="").strip(), row.text("question").strip()]
        if unit:
            parts.append(f"Give the answer in the unit {unit}.")
        if row.data.get("is_multiple_answer"):
            parts.append("There are several answers: give all of them, separated by commas.")
        metadata = rest(row, "subfield", "subject", "unit", "error", "answer_type", "solution")
        answer = ", ".join(answers)
        name = id_of("olympiadbench", row, "id")
        question = "\n\n".join(filter(None, parts))
        return Task(name, question, (answer,), "math", split=split_of(row, split), metadata=metadata)

    return make


def _undollared(text: str) -> str:
    """LaTeX without the dollar signs around it, also around each of several answers."""
    return re.sub(r"(?<!\\)\$", "", text).strip()


# -- LLMCompiler -------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def llmcompiler(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "number" where the answer is one, else "text"; the axis is the number of parallel branches.

    Args:
        path: rows with `question` and `answer`, such as `parallelqa_dataset.json`.
    """

    def make(row: DataRow) -> Task:
        answer = row.plain("answer").strip()
        kind = "number" if _NUMBER.fullmatch(answer) else "text"
        level = row.data.get("branch")
        level = level if type(level) is int else None
        metadata = ({"aliases": []} if kind == "text" else {}) | rest(row, "level")
        answer = answer.replace(",", "") if kind == "number" else answer
        name, question = id_of("llmcompiler", row, "id"), row.text("question").strip()
        axis = "" if level is None else "branches"
        return Task(name, question, (answer,), kind, axis, level, split_of(row, split), metadata)

    return stream(path, make)
