"""BrowseComp: what its owners encrypt is decrypted here, and what cannot be decrypted is an error of its row."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from concertino_bench import DataError
from concertino_bench.loaders.browsecomp import browsecomp, browsecomp_plus
from concertino_bench.loaders.open_questions import hle

CANARY = "a password of this test"
QUESTION, ANSWER = "Which bridge over the Aare in Bern — built before 1500 — stands there still?", "Untertorbrücke"


def hidden(text: str, canary: str = CANARY) -> str:
    """As the owners encrypt."""
    plain, key = text.encode(), hashlib.sha256(canary.encode()).digest()
    stream = key * (len(plain) // len(key)) + key[: len(plain) % len(key)]
    return base64.b64encode(bytes(a ^ b for a, b in zip(plain, stream, strict=True))).decode()


def table(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["problem", "answer", "problem_topic", "canary"])
        writer.writeheader()
        writer.writerows(rows)
    return path


def encrypted(question: str = QUESTION, canary: str = CANARY) -> dict[str, str]:
    return {
        "problem": hidden(question, canary),
        "answer": hidden(ANSWER, canary),
        "problem_topic": "Bridges",
        "canary": canary,
    }


def test_questions_are_decrypted_with_the_canary_of_their_row(tmp_path: Path) -> None:
    path = table(tmp_path / "browse_comp_test_set.csv", encrypted(), encrypted("Another?", "another password"))
    first, second = browsecomp(path=path)
    assert (first.id, first.question, first.answers) == ("browsecomp/row-1", QUESTION, (ANSWER,))
    assert (first.kind, first.metadata) == ("text", {"aliases": [], "topic": "Bridges"})
    assert (second.question, second.asked) == ("Another?", "")


def test_a_canary_that_does_not_fit_is_an_error_that_names_the_column(tmp_path: Path) -> None:
    path = table(tmp_path / "rows.csv", {**encrypted(), "canary": "not this one"})
    with pytest.raises(DataError, match=r"rows.csv:2: column 'problem' .*encrypted with this canary"):
        list(browsecomp(path=path))
    plain = table(tmp_path / "plain.csv", {**encrypted(), "problem": QUESTION})
    with pytest.raises(DataError, match=r"column 'problem' .*leave canary=… out"):
        list(browsecomp(path=plain))


def plus_row(write: Any) -> dict[str, Any]:
    documents = [{"docid": write(name), "text": write("long"), "url": write("there")} for name in ("12", "77")]
    return {
        "query_id": "3",
        "query": write(QUESTION),
        "answer": write(ANSWER),
        "gold_docs": documents[:1],
        "evidence_docs": documents,
        "negative_docs": documents,
    }


def test_published_and_decrypted_files_of_browsecomp_plus_give_the_same_tasks(tmp_path: Path) -> None:
    published, plain = tmp_path / "published.jsonl", tmp_path / "decrypted.jsonl"
    published.write_text(json.dumps(plus_row(hidden)))
    plain.write_text(json.dumps(plus_row(str)))
    (task,) = browsecomp_plus(path=published, canary=CANARY)
    assert [task] == list(browsecomp_plus(path=plain))
    assert (task.id, task.question, task.answer) == ("browsecomp-plus/3", QUESTION, ANSWER)
    assert task.metadata == {"aliases": [], "gold": ["12"], "evidence": ["12", "77"]}


def test_encrypted_questions_are_never_asked_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "published.jsonl"
    path.write_text(json.dumps(plus_row(hidden)))
    with pytest.raises(DataError, match=r"column 'query' .*give canary=… as .*decrypt_dataset.py"):
        list(browsecomp_plus(path=path))


def test_how_sure_an_answer_is_is_asked_of_the_solver_and_is_no_part_of_the_question(tmp_path: Path) -> None:
    path = table(tmp_path / "rows.csv", encrypted())
    (task,) = browsecomp(path=path, confidence=True)
    assert task.question == QUESTION
    assert task.prompt.startswith(QUESTION)
    assert "in percent" in task.prompt
    rows = tmp_path / "hle.jsonl"
    rows.write_text(json.dumps({"id": "h", "question": "What?", "answer": "3", "answer_type": "exactMatch"}))
    assert ["in percent" in task.prompt for task in (*hle(path=rows), *hle(path=rows, confidence=True))] == [
        False,
        True,
    ]
