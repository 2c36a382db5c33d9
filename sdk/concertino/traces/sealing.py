"""Sealed journals: their lines and side files can be read with a key alone, and are not changed unseen.

    export CONCERTINO_TRACE_KEY=$(concertino traces key)

    5d1f09aa {"t":"header","v":2,"run":"…","sealed":{"id":"…","check":"…"},"n":0}       readable
    └─ CRC32  7 kq2v…                                                                    number, nonce and ciphertext

A new journal is sealed while the variable holds a key (AES-256-GCM). Each file has a key of its own, made of the key in
the variable, a random id and the whole header; each line is bound to its number. So a line that was changed, moved,
doubled, dropped from the middle or taken from another file proves nothing, and reading stops there, as at any damage.
A side file is bound to its journal in the same way, and its name tells nothing of what it holds.

Invariant: no nonce serves twice, not even after a torn line: each is random. What stays visible: how many records there
are, their sizes, and the header. That records are missing at the end cannot be noticed: a crash leaves the same.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from concertino.core.errors import UsageError
from concertino.core.known_secrets import read_secret

from .journal_errors import BlobError, JournalError
from .journal_line import encode_json, parse_line, proven

VARIABLE = "CONCERTINO_TRACE_KEY"
"""The environment variable with the key."""

SEALED_VERSION = 2
"""The `v` of a sealed journal, so that an older concertino says that it is too new."""

_KEY_BYTES, _NONCE_BYTES, _ID_BYTES, _CHECK_BYTES = 32, 12, 16, 8
_MOST_HEADER = 1 << 20
_EXTRA = "pip install 'concertino[sealing]'"


def new_key() -> str:
    """A key for `CONCERTINO_TRACE_KEY`: 32 random bytes in base64."""
    return base64.urlsafe_b64encode(os.urandom(_KEY_BYTES)).decode()


class Seal:
    """What closes and opens the lines and side files of one journal.

    Args:
        key: 32 bytes, from the environment.
        header: of the journal, with its part `sealed`.
    """

    def __init__(self, key: bytes, header: Mapping[str, Any]) -> None:
        self.header = dict(header)
        whole = encode_json({name: value for name, value in header.items() if name != "n"})
        self._own = _derived(key, b"file", whole)
        self._cipher = _cipher(self._own)

    def closed(self, line: bytes, n: int) -> bytes:
        """A line of a journal, sealed as its record `n`."""
        nonce = os.urandom(_NONCE_BYTES)
        text = self._cipher.encrypt(nonce, line[9:-1], b"line %d" % n)
        data = b"%d %b" % (n, base64.b64encode(nonce + text))
        return b"%08x %b\n" % (crc32(data), data)

    def opened(self, line: bytes, n: int) -> bytes:
        """The inverse of `closed`; ValueError says what does not agree."""
        data = proven(line)
        number, _, body = data.partition(b" ")
        if number != b"%d" % n:
            raise ValueError("it does not carry the next sequence number")
        plain = self._open(base64.b64decode(body, validate=True), b"line %d" % n)
        if plain is None:
            raise ValueError("its seal does not fit: it was changed, or is of another place or trace")
        return b"%08x %b\n" % (crc32(plain), plain)

    def blob_name(self, digest: str) -> str:
        """The name of the side file that holds what has this SHA-256: 64 hex digits that do not tell it."""
        return _derived(self._own, b"name", digest.encode()).hex()

    def closed_blob(self, data: bytes, digest: str) -> bytes:
        """The bytes of a side file."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + bytes(self._cipher.encrypt(nonce, data, b"blob " + digest.encode()))

    def opened_blob(self, path: Path, data: bytes, digest: str) -> bytes:
        """The inverse of `closed_blob`. BlobError if the file is not what was written."""
        plain = self._open(data, b"blob " + digest.encode())
        if plain is None:
            raise BlobError(f"{path}: damaged, or of another trace: its seal does not fit. Restore it from a copy.")
        return plain

    def _open(self, data: bytes, place: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place))
        except (InvalidTag, ValueError):
            return None


def new_seal(header: Mapping[str, Any]) -> Seal | None:
    """The seal of a new journal, which adds its own part to the header; None while no key is set.

    Raises:
        UsageError: the variable holds no key, or the package `cryptography` is missing.
    """
    if not os.environ.get(VARIABLE):
        return None
    key, id_ = _key(), os.urandom(_ID_BYTES)
    sealed = {"id": id_.hex(), "check": _check(key, id_)}
    return Seal(key, {**header, "v": SEALED_VERSION, "sealed": sealed})


def seal_of(path: Path, header: Mapping[str, Any]) -> Seal | None:
    """The seal of a journal that was written before; None if it is not sealed.

    Raises:
        JournalError: its key is missing, or another one is set.
        UsageError: as `new_seal`.
    """
    sealed = header.get("sealed")
    if sealed is None:
        return None
    if not os.environ.get(VARIABLE):
        raise JournalError(f"{path}: sealed. Set {VARIABLE} to the key that it was written with.")
    key = _key()
    try:
        id_, check = bytes.fromhex(sealed["id"]), str(sealed["check"])
    except (TypeError, KeyError, ValueError):
        raise JournalError(
            f"{path}: its header is damaged (sealed = {sealed!r:.80}). Restore it from a copy."
        ) from None
    if not hmac.compare_digest(check.encode(), _check(key, id_).encode()):
        raise JournalError(f"{path}: sealed with another key. Set {VARIABLE} to the key that it was written with.")
    return Seal(key, header)


def seal_of_file(path: Path) -> Seal | None:
    """The seal of a journal by its path. Errors are those of `seal_of`; a file that cannot be read has none."""
    header = _header(path)
    return None if header is None else seal_of(path, header)


def is_sealed(path: Path) -> bool:
    """Whether a file is a sealed journal. No key is needed."""
    header = _header(path)
    return header is not None and "sealed" in header


def _header(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            return parse_line(file.readline(_MOST_HEADER), 0)
    except (OSError, ValueError):
        return None


def _key() -> bytes:
    text = read_secret(VARIABLE)
    try:
        key = base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise UsageError(
            f"{VARIABLE}: expected {_KEY_BYTES} bytes in base64, got {len(text)} characters that are something else; "
            "`concertino traces key` makes one"
        )
    return key


def _check(key: bytes, id_: bytes) -> str:
    return _derived(key, b"check", id_)[:_CHECK_BYTES].hex()


def _derived(key: bytes, purpose: bytes, what: bytes) -> bytes:
    """32 bytes that only the holder of the key can make."""
    return hmac.new(key, b"concertino trace, %b: %b" % (purpose, what), hashlib.sha256).digest()


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise UsageError(f"{VARIABLE} is set, but sealed traces need the package `cryptography`: {_EXTRA}") from None
    return AESGCM(key)
