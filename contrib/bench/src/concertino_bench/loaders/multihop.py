"""Questions that need several facts: HotpotQA, 2WikiMultihopQA, MuSiQue, Bamboogle, and the rows of FanOutQA.

The published files give paragraphs in four shapes and supporting facts in two; a task has one of each:

    metadata["paragraphs"]          [{"title": …, "text": …}, …], with `sentences` where the file splits them, and
                                    `supporting` where it marks them
    metadata["supporting_facts"]    [[title, index of the sentence], …]; an index may be out of range, as upstream
    metadata["aliases"]             further texts that are as right as the answer

The question is given alone, or, if asked for, below its paragraphs.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import Task

from .rows import DataRow
from .streaming import DataWarning, id_of, rest, split_of, stream

_IDS = ("_id", "id", "idx", "question_id")
_QUESTION = ("question", "Question")
_ANSWER = ("answer", "Answer", "golden_answers", "answers")
_ALIASES = ("answer_aliases", "aliases", "answer_alias")
_KEPT = ("type", "level", "evidences", "question_decomposition", "cot", "category", "data_source")


def hotpotqa(*, path: str | Path, paragraphs: bool = False, split: str = "") -> Iterator[Task]:
    """HotpotQA, in its own shape and that of the data sets' hub. Arguments as in `multihop`."""
    return multihop("hotpotqa", path=path, paragraphs=paragraphs, split=split)


def two_wiki(*, path: str | Path, paragraphs: bool = False, split: str = "") -> Iterator[Task]:
    """2WikiMultihopQA. Arguments as in `multihop`."""
    return multihop("2wiki", path=path, paragraphs=paragraphs, split=split)


def musique(*, path: str | Path, paragraphs: bool = False, split: str = "") -> Iterator[Task]:
    """MuSiQue; rows that are marked as unanswerable are left out, with a warning. Arguments as in `multihop`."""
    return multihop("musique", path=path, paragraphs=paragraphs, split=split)


def bamboogle(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """Bamboogle: questions and answers alone. Arguments as in `multihop`."""
    return multihop("bamboogle", path=path, split=split)


def multihop(name: str, *, path: str | Path, paragraphs: bool = False, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "text".

    Args:
        name: of the set, for ids where the file has none.
        path: rows with `question` and `answer` (a text, or a list of which the first is the answer and the others are
            aliases).
        paragraphs: write the paragraphs above the question.
    """
    warned = False

    def make(row: DataRow) -> Task | None:
        nonlocal warned
        # A missing mark means answerable: most files have none.
        if row.data.get("answerable") is not False:
            return _task(name, row, paragraphs, split)
        if not warned:
            text = "a question marked as unanswerable; it and further ones are left out, since no answer is right"
            warnings.warn(f"{row.place}: {text}", DataWarning, stacklevel=3)
            warned = True
        return None

    return stream(path, make)


def _task(name: str, row: DataRow, shown: bool, split: str) -> Task:
    question = row.text(*_QUESTION)
    answer, *others = row.plains(*_ANSWER)
    paragraphs = _paragraphs(row)
    aliases = [*dict.fromkeys(other for other in (*others, *_other_names(row)) if other != answer)]
    metadata: dict[str, Any] = {
        "aliases": aliases,
        "paragraphs": paragraphs,
        "supporting_facts": _facts(row),
    } | rest(row, *_KEPT)
    # Raises for the missing column: a question that promises paragraphs must not come without.
    if shown and not paragraphs:
        row.needed("context", "paragraphs")
    text = f"{rendered(paragraphs)}\n\nQuestion: {question}" if shown else question
    return Task(id_of(name, row, *_IDS), text, (answer,), "text", split=split_of(row, split), metadata=metadata)


def _other_names(row: DataRow) -> list[str]:
    column = row.column(*_ALIASES)
    return [row.text(column)] if column and isinstance(row.data[column], str) else row.texts(*_ALIASES)


def rendered(paragraphs: list[dict[str, Any]]) -> str:
    """Paragraphs as a model reads them, numbered, in the order of the file."""
    return "\n\n".join(f"[{number}] {each['title']}\n{each['text']}" for number, each in enumerate(paragraphs, 1))


def _paragraphs(row: DataRow) -> list[dict[str, Any]]:
    column = row.column("context", "paragraphs")
    if column is None:
        return []
    value = row.data[column]
    if isinstance(value, dict):
        titles, sentences = value.get("title"), value.get("sentences", value.get("content"))
        if not isinstance(titles, list) or not isinstance(sentences, list) or len(titles) != len(sentences):
            row.wrong(column, "'title' and 'sentences', two lists of equal length")
        value = list(zip(titles, sentences, strict=True))
    if not isinstance(value, list):
        row.wrong(column, "a list of paragraphs")
    return [_paragraph(row, column, item) for item in value]


def _paragraph(row: DataRow, column: str, item: Any) -> dict[str, Any]:
    title: Any = None
    body: Any = None
    marked: dict[str, Any] = {}
    if isinstance(item, Mapping):
        title = item.get("title")
        body = next((item[key] for key in ("text", "paragraph_text", "sentences") if key in item), None)
        mark = next((item[key] for key in ("is_supporting", "is_gold") if key in item), None)
        marked = {} if mark is None else {"supporting": bool(mark)}
    elif isinstance(item, list | tuple) and len(item) == 2:
        title, body = item
    if isinstance(title, str) and isinstance(body, str):
        return {"title": title, "text": body} | marked
    if isinstance(title, str) and isinstance(body, list) and all(isinstance(each, str) for each in body):
        text = " ".join(filter(None, (each.strip() for each in body)))
        return {"title": title, "text": text, "sentences": body} | marked
    raise row.error(
        f"column {column!r} holds {item!r:.60}; expected paragraphs as {{'title', 'text'}} or [title, [sentence, …]]: "
        "correct the row"
    )


def _facts(row: DataRow) -> list[list[Any]]:
    """Supporting facts as pairs, from pairs or from two lists."""
    value = row.data.get("supporting_facts")
    if value is None:
        return []
    if isinstance(value, dict):
        titles, numbers = value.get("title"), value.get("sent_id")
        if not isinstance(titles, list) or not isinstance(numbers, list) or len(titles) != len(numbers):
            row.wrong("supporting_facts", "'title' and 'sent_id', two lists of equal length")
        value = list(zip(titles, numbers, strict=True))
    if not isinstance(value, list):
        row.wrong("supporting_facts", "[[title, index], …] or {'title': […], 'sent_id': […]}")
    for pair in value:
        fits = isinstance(pair, list | tuple) and len(pair) == 2
        # `type`, since true is an int for isinstance.
        if not fits or not isinstance(pair[0], str) or type(pair[1]) is not int:
            row.wrong("supporting_facts", f"pairs of a title and a number, and one is {pair!r:.40}")
    return [list(pair) for pair in value]


# -- FanOutQA ----------------------------------------------------------------------------------------------------------


def fanoutqa(*, path: str | Path, split: str = "") -> Iterator[Task]:
    """FanOutQA: tasks of the kind "text" for one answer, "answers" for a list or a table of them.

    The names of a table are the metadata's `keys`; a list has any order (`ordered` is false). True and false are "yes"
    and "no", with the words themselves as aliases. The answer as it is (`gold`) and the human decomposition are in the
    metadata too.

    Args:
        path: rows with `question`, `answer` (a text, number, boolean, list or object) and `decomposition`.
    """
    return stream(path, lambda row: _fan_out(row, split))


def _fan_out(row: DataRow, split: str) -> Task:
    value = row.data[row.needed("answer")]
    parts = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
    how: dict[str, Any] = {}
    if isinstance(value, dict):
        answers, how = tuple(_flat(item) for item in parts), {"keys": [*value]}
    elif isinstance(value, list):
        answers, how = tuple(_flat(item) for item in parts), {"ordered": False}
    else:
        answers = (_flat(value) if isinstance(value, bool) else row.plain("answer"),)
    aliases = [[str(item).lower()] if isinstance(item, bool) else [] for item in parts]
    if not how:
        how = {"aliases": aliases[0]}
    elif any(aliases):
        how["aliases"] = aliases
    if not answers:
        row.wrong("answer", "at least one answer")
    metadata = {"gold": value} | rest(
        row, "decomposition", "categories", "depth", "n_subquestions", "necessary_evidence"
    )
    return Task(
        id_of("fanoutqa", row, "id"),
        row.text("question"),
        answers,
        "answers" if isinstance(value, dict | list) else "text",
        split=split_of(row, split),
        metadata=metadata | how,
    )


def _flat(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_flat(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_flat(item)}" for key, item in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
