"""BrowseComp and BrowseComp-Plus: short answers that take long searches, published encrypted and decrypted here.

Their owners encrypt the texts so that no model is trained on them by chance: XOR with the SHA-256 hash of a password,
repeated, in base64. The password, a *canary*, is a column of BrowseComp. For BrowseComp-Plus it is in the program
that its owners publish. If you run these tasks, plain questions are in your traces and results: keep them
to yourself.

The invariant: a text that the canary does not decrypt is an error of its row, never a question.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from concertino_bench.tasks.task import Task

from .open_questions import with_confidence
from .rows import DataRow
from .streaming import id_of, split_of, stream

_PUBLISHED = "scripts_build_index/decrypt_dataset.py of github.com/texttron/BrowseComp-Plus"
_ENCRYPTED = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")


def browsecomp(*, path: str | Path, canary: str = "", confidence: bool = False, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "text"; the metadata has the `topic`.

    Args:
        path: rows with `problem` and `answer`, encrypted with the column `canary` of each, such as
            `browse_comp_test_set.csv`.
        canary: the password, where the file has no such column.
        confidence: also ask how sure the answer is, in percent.
    """

    def make(row: DataRow) -> Task:
        key = canary or row.text("canary")
        topic = {"topic": row.data["problem_topic"]} if row.column("problem_topic") else {}
        return _task(row, id_of("browsecomp", row, "id"), ("problem", "answer"), key, confidence, split, topic)

    return stream(path, make)


def browsecomp_plus(*, path: str | Path, canary: str = "", confidence: bool = False, split: str = "") -> Iterator[Task]:
    """Tasks of the kind "text"; the metadata has the ids of the documents that answer (`gold`) and help (`evidence`).

    Args:
        path: rows with `query_id`, `query`, `answer`, `gold_docs`, `evidence_docs`: the published Parquet files, or the
            JSON Lines that the owners' program has decrypted.
        canary: the password of the published files; without it the file is taken as decrypted.
        confidence: also ask how sure the answer is, in percent.
    """

    def make(row: DataRow) -> Task:
        documents = {
            name: _document_ids(row, column, canary)
            for name, column in (("gold", "gold_docs"), ("evidence", "evidence_docs"))
            if row.column(column)
        }
        name = id_of("browsecomp-plus", row, "query_id", "id")
        return _task(row, name, ("query", "answer"), canary, confidence, split, documents)

    return stream(path, make)


def decrypted(text: str, canary: str) -> str:
    """The plain text.

    Raises:
        ValueError: it was not encrypted with this canary, or not at all.
    """
    try:
        hidden = base64.b64decode(text, validate=True)
        plain = bytes(one ^ other for one, other in zip(hidden, cycle(hashlib.sha256(canary.encode()).digest())))
        return plain.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("it is not a text that was encrypted with this canary") from error


def _task(
    row: DataRow,
    name: str,
    columns: tuple[str, str],
    canary: str,
    confidence: bool,
    split: str,
    metadata: dict[str, Any],
) -> Task:
    asked, known = columns
    question, answer = _plain(row, asked, row.text(asked), canary), _plain(row, known, row.plain(known), canary)
    metadata = {"aliases": []} | metadata
    task = Task(name, question, (answer,), "text", split=split_of(row, split), metadata=metadata)
    return with_confidence(task) if confidence else task


def _plain(row: DataRow, column: str, text: str, canary: str) -> str:
    text = text.strip()
    if not canary:
        # No question is one long word; an encrypted one is.
        if _ENCRYPTED.fullmatch(text):
            row.wrong(column, f"plain text; to decrypt it, give canary=… as {_PUBLISHED} has it")
        return text
    try:
        return decrypted(text, canary).strip()
    except ValueError:
        row.wrong(column, "a text that was encrypted with this canary; leave canary=… out for a decrypted file")


def _document_ids(row: DataRow, column: str, canary: str) -> list[str]:
    documents = row.items(column)
    if not all(isinstance(each, dict) and "docid" in each for each in documents):
        row.wrong(column, "a list of documents, each with 'docid'")
    ids = [str(each["docid"]) for each in documents]
    try:
        return [decrypted(each, canary) for each in ids] if canary else ids
    except ValueError:
        row.wrong(column, "documents whose 'docid' was encrypted with this canary")
