"""Large values of a journal, each in a side file named by its content.

    run.trace           ... {"$blob":"9f86d0...","bytes":1048576,"small":{"t":"result",…},"big":["content"],"n":7}
    run.trace.blobs/    9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

The small fields of the record stand beside the reference, for a reader that needs no more; what is whole is the file.
The name is the SHA-256 of the bytes, so equal values are kept once and a damaged file is noticed. Invariant:
a side file is complete under its name before the record that mentions it is written, so an intact record
never points to half a value. What is read back comes from outside: a reference is checked for form before it
becomes a path.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from concertino.core.private_files import make_private_folder, open_private
from concertino.core.regular_file import read_regular

from .disk import sync_file, sync_folder, write_all
from .journal_errors import BlobError, JournalError, JournalWriteError
from .journal_line import decode_json, encode_json
from .mirror import Mirror
from .sealing import Seal, seal_of_file

BLOB_LIMIT = 64 * 1024
"""Bytes of JSON above which `pack` moves a value into a side file."""

_MOST = 512 << 20
"""Bytes of a side file that is read."""
_SMALL = 256
"""Characters of a text that stands beside the reference to a side file."""

# `\Z`, because `$` would let a line break at the end into a path.
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_TEMPORARY = ".tmp"


class Externaliser(Protocol):
    """What `pack` needs of a journal."""

    def externalise(self, value_json: bytes) -> dict[str, Any]: ...


class BlobStore:
    """The side files of one journal; with `sync`, each is on disk before its reference is returned."""

    def __init__(self, journal: Path, *, sync: bool = False, mirror: Mirror | None = None) -> None:
        self.journal = journal
        self._sync, self._mirror = sync, mirror
        self._written: set[str] = set()
        # Two threads may write the same value at the same time; each needs a temporary name of its own.
        self._serial = itertools.count()

    @cached_property
    def seal(self) -> Seal | None:
        """What the files are sealed with; a writer sets it, a reader finds it in the journal."""
        return seal_of_file(self.journal)

    @cached_property
    def folder(self) -> Path:
        """Where they are; made with the first of them."""
        return self.journal.with_name(self.journal.name + ".blobs")

    def write(self, value_json: bytes, digest: str = "") -> dict[str, Any]:
        """Keep the bytes and return their reference. JournalWriteError if the disk refuses; no part stays.

        Args:
            digest: their SHA-256, where it is known.
        """
        digest = digest or hashlib.sha256(value_json).hexdigest()
        # A file from an earlier process is written again rather than trusted: it may be damaged, or not on
        # disk yet.
        if digest not in self._written:
            try:
                seal = self.seal
                name, data = (
                    (digest, value_json)
                    if seal is None
                    else (seal.blob_name(digest), seal.closed_blob(value_json, digest))
                )
                self._replace(name, data)
                if self._mirror is not None:
                    self._mirror.keep(self.folder / name, data)
            except OSError as error:
                raise JournalWriteError.of(self.folder / digest, "the value was not written", error) from error
            self._written.add(digest)
        return {"$blob": digest, "bytes": len(value_json)}

    def read(self, reference: Mapping[str, Any]) -> bytes:
        """The bytes behind a reference. BlobError if they are missing, or not the bytes that were written."""
        digest, size = reference.get("$blob"), reference.get("bytes")
        if not isinstance(digest, str) or not _SHA256.match(digest):
            raise BlobError(
                f"{self.folder}: {digest!r} is not a blob name; expected 64 hex digits. "
                "The record was not written by concertino."
            )
        seal = self.seal
        path = self.folder / (digest if seal is None else seal.blob_name(digest))
        try:
            data = read_regular(path, _MOST)
        except OSError as error:
            raise BlobError(
                f"{path}: the value of {size} bytes cannot be read ({error.strerror}). Copy the folder "
                f"{self.folder.name} along with its trace."
            ) from error
        if seal is not None:
            data = seal.opened_blob(path, data, digest)
        if hashlib.sha256(data).hexdigest() != digest:
            raise BlobError(
                f"{path}: damaged ({len(data)} bytes, {size} written; the checksum differs). "
                "Restore it from a copy; the trace itself is not affected."
            )
        return data

    def sweep(self) -> None:
        """Remove what a killed writer left half written; only for the holder of the journal's lock."""
        # A link would have the files of another folder removed.
        for path in () if self.folder.is_symlink() else self.folder.glob("*" + _TEMPORARY):
            if _SHA256.match(path.name.partition(".")[0]):
                path.unlink(missing_ok=True)

    def delete(self) -> None:
        """Remove the side files, and their folder where nothing else is in it."""
        if self.folder.is_symlink():
            self.folder.unlink()
            return
        for path in self.folder.glob("*"):
            if _SHA256.match(path.name.partition(".")[0]):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it is not there, or somebody keeps other files in it
            self.folder.rmdir()

    def _replace(self, digest: str, data: bytes) -> None:
        if self.folder.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))  # it leads out of the folder of traces
        if not self.folder.is_dir():
            make_private_folder(self.folder)
            if self._sync:
                sync_folder(self.folder.parent)
        temporary = self.folder / f"{digest}.{os.getpid()}-{next(self._serial)}{_TEMPORARY}"
        fd = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            try:
                write_all(fd, data)
                if self._sync:
                    sync_file(fd)
            finally:
                os.close(fd)
            # Renaming is atomic: no reader ever sees half a value under its final name.
            temporary.replace(self.folder / digest)
        # An interrupt too must leave no half-written file behind.
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        # A record may name this file next, so the name too must be on disk.
        if self._sync:
            sync_folder(self.folder)


def pack(value: Any, journal: Externaliser, limit: int = BLOB_LIMIT) -> Any:
    """The value itself if its JSON has at most `limit` bytes, else a reference to its side file.

    A value that has the look of a reference always goes to a side file, so what a tool returns can never pass
    for one.

    Raises:
        JournalEncodeError: the value has no JSON form.
        JournalWriteError: the disk refuses.
    """
    value_json = encode_json(value)
    posing = isinstance(value, Mapping) and "$blob" in value
    return journal.externalise(value_json) if posing or len(value_json) > limit else value


def small_parts(record: Mapping[str, Any]) -> dict[str, Any]:
    """What stands beside the reference to a record: its small fields, and the names of the others."""
    small = {key: value for key, value in record.items() if _is_small(value)}
    return {"small": small, "big": [key for key in record if key not in small]}


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _SMALL
    if isinstance(value, (dict, list)):
        parts = value.values() if isinstance(value, dict) else value
        return len(value) <= _SMALL // 16 and all(not isinstance(v, dict) and _is_small(v) for v in parts)
    return value is None or isinstance(value, (bool, int, float))


def unpack(value: Any, blobs: BlobStore) -> Any:
    """The value that `pack` was given.

    Raises:
        BlobError: its side file is missing or damaged.
        JournalError: the file holds no JSON, or JSON that no record holds.
    """
    if isinstance(value, Mapping) and "$blob" in value:
        try:
            return decode_json(blobs.read(value))
        except ValueError as reason:
            raise JournalError(f"{blobs.folder / value['$blob']}: not written by concertino: {reason}") from None
    return value
