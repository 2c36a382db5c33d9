"""A copy of a trace that can be shared: without secrets, and without what tells whose machine it was.

    report = write_redacted(Trace.load("run.trace.jsonl"), Path("shared.trace.jsonl"))
    report.taken_out                    # {"secrets": 2, "emails": 0, "homes": 5, …}

What is taken out leaves a mark, the same for equal things: `[key]`, `[email]`, `[home]`, `[user]`. So the copy has the
same records in the same order, and is shown, exported and replayed as the original is. Bytes of attachments and ids of
tokens are always left out, since nobody can look for a secret in them.

Invariant: the original is not changed, and no file is overwritten. This is a net: what is private in the words of a
question or a result, only a person can see. Read the copy before you share it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from concertino.core.errors import UsageError
from concertino.core.known_secrets import HIDDEN
from concertino.core.private_files import make_private_folder
from concertino.core.redaction import Redactor, is_secret_name

from .blobs import BLOB_LIMIT
from .journal import Journal
from .journal_errors import JournalExists
from .trace import Trace, header

KINDS: Mapping[str, str] = {
    "secrets": "secrets that this process knows, and what looks like a key or stands under a name that says so",
    "emails": "addresses of mail",
    "homes": "folders of users, such as /home/name",
    "users": "names of the users whose folders are named, and of the one at work",
    "attachments": "bytes of images, sounds and files",
    "tokens": "ids and log-probabilities of tokens",
}
"""What can be taken out, and what each is."""

ALWAYS = ("secrets", "attachments", "tokens")
"""Kinds that are taken out in any case."""

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")
_HOME = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\{1,4}Users\\{1,4})([\w.-]{1,64})|(?<![\w/])/root(?![\w-])")
_COMMON_USERS = frozenset({"root", "user", "users", "home", "admin", "test", "shared", "public", "default", "guest"})
_TOKENS = frozenset({"token_ids", "logprobs", "prompt_token_ids"})


@dataclass(frozen=True)
class RedactionReport:
    """What was written, and what was taken out.

    Attributes:
        path: of the copy.
        records: how many it has.
        taken_out: how often each kind was.
    """

    path: Path
    run_id: str
    records: int
    taken_out: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data = {"path": str(self.path), "run_id": self.run_id, "records": self.records}
        return {**data, "taken_out": dict(self.taken_out)}


def write_redacted(trace: Trace, target: Path, *, keep: Collection[str] = ()) -> RedactionReport:
    """Write a copy of a trace that can be shared. It is not sealed.

    Args:
        keep: kinds that stay: `emails`, `homes`, `users`.

    Raises:
        UsageError: the file exists, or such a kind cannot stay.
        JournalError: the file cannot be written.
    """
    if unknown := [kind for kind in keep if kind not in KINDS or kind in ALWAYS]:
        raise UsageError(f"keep={unknown[0]!r}: expected {', '.join(kind for kind in KINDS if kind not in ALWAYS)}")
    make_private_folder(target.parent)
    taker = _Taker(trace, frozenset(KINDS) - frozenset(keep))
    try:
        journal = Journal.create(target, header(trace.run_id), sealed=False)
    except JournalExists:
        raise UsageError(f"{target}: exists already, and nothing is overwritten; give another file with -o") from None
    with journal:
        for record in trace.records:
            cleaned = taker.record(record)
            for data in taker.placeholders(cleaned):
                journal.externalise(data)
            journal.append(cleaned, limit=BLOB_LIMIT)
    counts = {kind: taker.counts[kind] for kind in KINDS if kind in taker.kinds}
    return RedactionReport(target, trace.run_id, len(trace), counts)


class _Taker:
    """Takes out of the records of one trace what is not to be shared, and counts it."""

    def __init__(self, trace: Trace, kinds: frozenset[str]) -> None:
        self.kinds = kinds
        self.counts: Counter[str] = Counter()
        self._redactor = Redactor()
        self._bytes: dict[str, bytes] = {}
        attached = [
            item["sha256"] for record in trace.of_kind("attach") for item in record["attachments"] if _has_bytes(item)
        ]
        self._replaced = {old: self._placeholder(number) for number, old in enumerate(dict.fromkeys(attached), 1)}
        self._users = _word_pattern(_users_of(trace)) if "users" in kinds else None

    def record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A record for the copy, without the number that the journal gives."""
        cleaned: dict[str, Any] = self._value({key: value for key, value in record.items() if key != "n"})
        if record["t"] == "attach":
            self.counts["attachments"] += sum(map(_has_bytes, record["attachments"]))
            for item in filter(_has_bytes, cleaned["attachments"]):
                item["bytes"] = len(self._bytes[item["sha256"]])
        return cleaned

    def placeholders(self, record: Mapping[str, Any]) -> Iterator[bytes]:
        """What stands in the place of the attachments of a cleaned record."""
        if record["t"] == "attach":
            yield from (self._bytes[item["sha256"]] for item in record["attachments"] if _has_bytes(item))

    def _placeholder(self, number: int) -> str:
        data = f"attachment {number}, taken out of this copy".encode()
        digest = sha256(data).hexdigest()
        self._bytes[digest] = data
        return digest

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            if value and is_secret_name(key):
                self.counts["secrets"] += value != HIDDEN
                return HIDDEN
            return self._text(value)
        if isinstance(value, Mapping):
            self.counts["tokens"] += sum(1 for name in value if name in _TOKENS)
            return {self._text(name): self._value(item, name) for name, item in value.items() if name not in _TOKENS}
        if isinstance(value, (list, tuple)):
            return [self._value(item, key) for item in value]
        return value

    def _text(self, text: str) -> str:
        if not text:
            return text
        for old, new in self._replaced.items():
            # A mark in a text has the first twelve digits alone.
            text = text.replace(old, new).replace(old[:12], new[:12])
        cleaned = self._redactor.text(text)
        if cleaned != text:
            self.counts["secrets"] += cleaned.count(HIDDEN) - text.count(HIDDEN)
        if "emails" in self.kinds and "@" in cleaned:
            cleaned = self._counted("emails", _EMAIL, cleaned)
        if "homes" in self.kinds and ("/" in cleaned or "\\" in cleaned):
            cleaned = self._counted("homes", _HOME, cleaned)
        return cleaned if self._users is None else self._counted("users", self._users, cleaned)

    def _counted(self, kind: str, pattern: re.Pattern[str], text: str) -> str:
        text, count = pattern.subn(f"[{kind[:-1].removesuffix('s')}]", text)
        self.counts[kind] += count
        return text


def _has_bytes(item: Mapping[str, Any]) -> bool:
    return not item.get("url")


def _users_of(trace: Trace) -> set[str]:
    """Names of users: of the folders that the trace names, and of the one at work."""
    import getpass

    found = {Path.home().name}
    try:
        found.add(getpass.getuser())
    except (KeyError, OSError):  # a container may run as a user without a name
        found.discard("")
    for record in trace.records:
        for text in _texts(record):
            if "home/" in text or "Users" in text:
                found.update(match[1] for match in _HOME.finditer(text) if match[1])
    return {name for name in found if len(name) > 2 and name.lower() not in _COMMON_USERS}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _word_pattern(words: Collection[str]) -> re.Pattern[str] | None:
    any_of = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return re.compile(rf"(?<![\w-])(?:{any_of})(?![\w-])") if words else None
