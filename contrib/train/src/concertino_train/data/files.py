"""Conversations on disk: JSON Lines of plain data, one conversation per line.

The invariants: what is read equals what was written; a file is there whole or not at all; and a line that is no
conversation is named with its number and what is wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from concertino import Message, UsageError

from .conversations import RoleConversation

NAME = "conversations.jsonl"
"""What the file is called in the folder of a set."""

_PLAIN = ("role", "part", "task", "question", "run", "pool", "strategy", "rewritten")
_NEEDED = ("id", "messages", "own", "train")
_KNOWN = frozenset((*_NEEDED, *_PLAIN, "faults", "tools", "models"))
_ROLES = ("system", "user", "assistant", "tool")


def to_row(conversation: RoleConversation) -> dict[str, Any]:
    """A conversation as plain JSON data; what says nothing is left out."""
    row: dict[str, Any] = {
        "id": conversation.id,
        "messages": [message.to_json() for message in conversation.messages],
        "own": list(conversation.own),
        "train": list(conversation.train),
    }
    row |= {name: value for name in _PLAIN if (value := getattr(conversation, name))}
    if conversation.faults:
        row["faults"] = {str(place): list(codes) for place, codes in conversation.faults.items()}
    for name in ("tools", "models"):
        if value := getattr(conversation, name):
            row[name] = list(value)
    return row


def from_row(row: Any) -> RoleConversation:
    """The inverse of `to_row`.

    Raises:
        UsageError: it is no conversation; says what is wrong.
    """
    if not isinstance(row, Mapping):
        raise UsageError(f"a conversation is an object; got {type(row).__name__}")
    if missing := [name for name in _NEEDED if name not in row]:
        raise UsageError(f"{', '.join(missing)} is missing; a conversation has {', '.join(_NEEDED)}")
    if unknown := sorted(set(row) - _KNOWN):
        raise UsageError(f"{unknown[0]!r} is not part of a conversation; there are {', '.join(sorted(_KNOWN))}")
    try:
        messages = tuple(_message(number, data) for number, data in enumerate(row["messages"]))
        faults = {int(place): tuple(codes) for place, codes in row.get("faults", {}).items()}
        more: dict[str, Any] = {name: str(row[name]) for name in _PLAIN if name in row}
        more |= {name: tuple(row[name]) for name in ("tools", "models") if name in row}
        places = tuple(map(int, row["own"])), tuple(map(int, row["train"]))
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"no conversation: {type(error).__name__}: {error}") from error
    if places[0] and places[0][-1] >= len(messages):
        raise UsageError(f"own={list(places[0])}, and there are {len(messages)} messages")
    return RoleConversation(str(row["id"]), messages, places[0], places[1], faults, **more)


def _message(number: int, data: Any) -> Message:
    if not isinstance(data, Mapping) or data.get("role") not in _ROLES or not isinstance(data.get("text"), str):
        shown = json.dumps(data, default=str)[:80]
        raise UsageError(
            f'message {number} is {shown}; expected {{"role": …, "text": "…"}} with a role of {", ".join(_ROLES)}'
        )
    return Message.from_json(dict(data))


def write_conversations(conversations: Iterable[RoleConversation], path: str | Path) -> str:
    """Write them, one per line.

    Returns:
        SHA-256 of the file.

    Raises:
        UsageError: two have one id.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # With the process in its name, so that two that write one set do not write one file.
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    digest, seen = hashlib.sha256(), set[str]()
    try:
        with beside.open("wb") as file:
            for each in conversations:
                if each.id in seen:
                    raise UsageError(f"{target}: two conversations have the id {each.id!r}")
                seen.add(each.id)
                line = encoded_line(to_row(each))
                digest.update(line)
                file.write(line)
        beside.replace(target)
    finally:
        with suppress(OSError):  # on a read-only disk, even what is not there cannot be removed
            beside.unlink(missing_ok=True)
    return digest.hexdigest()


def encoded_line(data: Mapping[str, Any]) -> bytes:
    """One line of JSON Lines; a text that UTF-8 cannot hold is written in escapes."""
    try:
        return (json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8")
    except UnicodeEncodeError:
        return (json.dumps(data, separators=(",", ":")) + "\n").encode("ascii")


def read_conversations(path: str | Path) -> Iterator[RoleConversation]:
    """The conversations of a file, or of the folder of a set, one by one.

    Raises:
        UsageError: the file cannot be read, or a line is no conversation; names file and line.
    """
    source = Path(path)
    source = source / NAME if source.is_dir() else source
    try:
        with source.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _read(source, number, line)
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror or error}; make a set first") from error


def _read(source: Path, number: int, line: bytes) -> RoleConversation:
    try:
        return from_row(json.loads(line))
    except ValueError as error:
        what = "it is torn" if not line.endswith(b"\n") else "it is not JSON"
        raise UsageError(f"{source}, line {number}: {what}: {error}; make the set again") from error
    except UsageError as error:
        raise UsageError(f"{source}, line {number}: {error}") from error
