"""What is known of a large trace, kept beside it: so that a list of runs does not read gigabytes.

    run.trace.jsonl           the trace
    run.trace.jsonl.index     its facts: a line of JSON, for its user alone

It is a cache and nothing else: nobody needs it, and nothing is lost with it. Invariant: it is believed only where it
belongs to the very file that lies there (same file, same length, not written since), was written by this user, whom no
other can write for, and is what was written, by its checksum. In all other cases the trace is read. It is made only for
a trace that nobody writes to, and in one step, so a crash leaves the old one or none.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path
from typing import Any
from zlib import crc32

from concertino.core.private_files import write_private

from .journal_lock import is_being_written
from .sealing import is_sealed

FROM_BYTES = 4 << 20
"""Bytes of a trace from which on an index pays: shorter ones are read in less than the tenth of a second."""
SUFFIX = ".index"
_VERSION = 1
_MOST = 1 << 20
"""Bytes of an index that is read, or kept: an answer of a megabyte is not copied beside its trace."""


def index_of(path: Path) -> Path:
    """Where the index of a trace lies."""
    return path.with_name(path.name + SUFFIX)


def known_facts(path: Path) -> dict[str, Any] | None:
    """What the index of a trace says, None if there is none to be believed."""
    try:
        now = path.stat()
        if now.st_size < FROM_BYTES:
            return None
        line = _own_bytes(index_of(path))
        body, mark = line[9:-1], line[:9]
        if mark != b"%08x " % crc32(body):
            return None
        data = json.loads(body)
        fits = data["version"] == _VERSION and data["file"] == _identity(now)
        facts = data["facts"]
        return facts if fits and isinstance(facts, dict) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def keep_facts(path: Path, before: os.stat_result, facts: dict[str, Any]) -> None:
    """Write the index of a trace; a failure leaves it without one.

    Args:
        before: what the file was before it was read; if it is another one now, nothing is kept.
    """
    # Facts hold question and answer: beside a sealed trace, they would tell what it hides.
    if before.st_size < FROM_BYTES or is_being_written(path) or is_sealed(path):
        return
    with contextlib.suppress(OSError, ValueError):
        # Looked at after the lock: a write in between has left another length or time.
        if _identity(path.stat()) != _identity(before):
            return
        body = json.dumps({"version": _VERSION, "file": _identity(before), "facts": facts}).encode()
        if len(body) <= _MOST:
            write_private(index_of(path), b"%08x %b\n" % (crc32(body), body))


def _identity(found: os.stat_result) -> list[int]:
    """What changes when a file does; the time of change cannot be set back by a program."""
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _own_bytes(path: Path) -> bytes:
    """The bytes of a file that only this user can write; OSError for any other."""
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    fd = os.open(path, os.O_RDONLY | flags)
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        foreign = hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022)
        if foreign or not stat.S_ISREG(found.st_mode) or found.st_size > _MOST + 64:
            raise OSError(f"{path}: not an index of this user")
        return file.read()
