r"""One line of a journal: how a record becomes bytes, and how bytes prove to be that record.

    5d1f09aa {"t":"result","call":"c3","status":"OK","n":7}\n
    └─ CRC32 of the JSON bytes, 8 lower-case hex digits  └─ sequence number, counted from 0

The JSON is compact UTF-8 and never holds a raw newline, so a line is a record and `grep` works. Invariant: a
line is accepted only if checksum, JSON and sequence number all agree, so a cut, a flipped bit, a lost line
and a doubled line are all noticed. The first line is the *header*: `{"t":"header","v":1,...}`; `v` is the
version of the records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from json.scanner import make_scanner
from pathlib import Path
from typing import Any
from zlib import crc32

from concertino.core.errors import UsageError

from .journal_errors import JournalEncodeError, JournalError, JournalTooNew

FORMAT_VERSION = 2
"""The newest `v` that this version reads and writes; from 2 on, a journal may be sealed."""

# 8 hex digits of the checksum, and a blank.
PREFIX_LENGTH = 9

# Cycles end in RecursionError, which is caught below; the encoder's own bookkeeping for them costs a third of
# its time.
_FORM: dict[str, Any] = {"separators": (",", ":"), "allow_nan": False, "check_circular": False}


def _encoder(ascii_only: bool) -> Callable[[object], str]:
    """A function that gives the JSON of a value."""
    encoder = json.JSONEncoder(ensure_ascii=ascii_only, **_FORM)
    make = getattr(json.encoder, "c_make_encoder", None)
    text = json.encoder.encode_basestring
    if make is None or ascii_only:  # other Pythons have none in C
        return encoder.encode
    # `encode` makes one of these for every value, which takes as long as to encode a record.
    kept = make(None, encoder.default, text, None, ":", ",", False, False, False)
    return lambda value: "".join(kept(value, 0))


_encode_utf8, _encode_ascii = _encoder(False), _encoder(True)


def _refused(word: str) -> None:
    raise ValueError(f"it holds {word}, which is not JSON")


# Not `raw_decode`, which asks no more than this for every line of a journal.
_decoder: Any = json.JSONDecoder(parse_constant=_refused)
_scan = make_scanner(_decoder)

DEEPEST = 200
"""Levels of lists and tables in one record; what a member takes or returns has at most a third of them."""
LONG_TEXT = 4096
"""Bytes of a text's JSON from which on `skim_line` may cut it."""
_RESULT, _CONTENT, _FULL = b'{"t":"result",', b'"content":"', b'"full":"'
_MOST_MARKS = 48
_WORTH_AN_IMPORT = 2**21
"""Bytes that `json` decodes in the time that another decoder takes to be imported."""
_ESCAPE = 12
"""Bytes of the longest escape, which stands for a letter of two halves."""
_BACKSLASH = 0x5C


def encode_json(value: object) -> bytes:
    """Compact UTF-8 JSON of any JSON value.

    Raises:
        JournalEncodeError: the value holds NaN, an infinity, a cycle, or a type that JSON does not have.
    """
    try:
        try:
            return _encode_utf8(value).encode()
        except UnicodeEncodeError:
            # A lone surrogate (half an emoji cut by a token limit) has no UTF-8 form, but it has a \u escape.
            return _encode_ascii(value).encode()
    except RecursionError:
        reason = "it is nested too deep, or contains itself"
    except (TypeError, ValueError) as error:
        reason = str(error)
    raise JournalEncodeError(f"{_place(value)}cannot be written as JSON: {reason}. Nothing was written.")


def encode_json_in_steps(value: object) -> bytes:
    """As `encode_json`, for a large value in a thread: others run meanwhile."""
    # Imported here: reading traces needs no event loop.
    from concertino.core.background import json_in_steps

    try:
        return json_in_steps(value, ",", ":").encode()
    except (TypeError, ValueError, RecursionError):
        return encode_json(value)  # which writes what is rare, and says what is wrong


def frame(body: bytes, n: int) -> bytes:
    """The line of an encoded JSON object as record number `n`."""
    # An empty object, `{}`, has nothing before the number.
    comma = b"," if len(body) > 2 else b""
    data = b'%b%b"n":%d}' % (body[:-1], comma, n)
    return b"%08x %b\n" % (crc32(data), data)


def parse_line(line: bytes, n: int) -> dict[str, Any]:
    """The record of a line that must be number `n`; ValueError names what does not agree."""
    data = line[PREFIX_LENGTH:-1]
    if line[:PREFIX_LENGTH] != b"%08x " % crc32(data) or line[-1:] != b"\n":
        raise _unproven(line)
    return _record(data, n)


def skim_line(line: bytes, n: int, keep: int = 0) -> dict[str, Any]:
    """As `parse_line`, but of a long text in a result maybe only its first `keep` bytes.

    To decode texts that nobody will look at takes most of the time of a large journal.
    """
    data = line[PREFIX_LENGTH:-1]
    if line[:PREFIX_LENGTH] != b"%08x " % crc32(data) or line[-1:] != b"\n":
        raise _unproven(line)
    if len(data) >= LONG_TEXT and data.startswith(_RESULT):
        data = _skimmed(data, keep)
    return _record(data, n)


def proven(line: bytes) -> bytes:
    """The JSON of a line whose checksum agrees."""
    data = line[PREFIX_LENGTH:-1]
    if line[:PREFIX_LENGTH] != b"%08x " % crc32(data) or line[-1:] != b"\n":
        raise _unproven(line)
    return data


def _unproven(line: bytes) -> ValueError:
    if line[-1:] != b"\n":
        return ValueError("the file ends inside this record")
    return ValueError("its checksum does not match its bytes")


class _Quick:
    """The decoder of pydantic: two to six times faster than `json`, and worth its import after some megabytes."""

    __slots__ = ("_decode", "_read")

    def __init__(self) -> None:
        self._decode: Callable[..., Any] | None = None
        self._read = 0

    def decoder(self, size: int) -> Callable[..., Any] | None:
        """The decoder, to read that many bytes more; None if not much has been read."""
        if self._decode is None:
            self._read += size
            if self._read > _WORTH_AN_IMPORT:
                from pydantic_core import from_json

                self._decode = from_json
        return self._decode


_QUICK = _Quick()


def decode_json(data: bytes) -> Any:
    """The value of JSON bytes.

    Raises:
        ValueError: they are not UTF-8, or not one JSON value.
        JournalError: it is nested deeper than what a run can record.
    """
    quick = _QUICK.decoder(len(data))
    if quick is None:
        return _decode_slowly(data)
    try:
        value = quick(data, allow_inf_nan=False)
    except ValueError:  # it is no JSON, or it holds what only `json` reads: half an emoji, or very much of something
        return _decode_slowly(data)
    if data.count(b"{") + data.count(b"[") > DEEPEST and _is_too_deep(value):
        raise _too_deep()
    return value


def _decode_slowly(data: bytes) -> Any:
    text = data.decode()
    try:
        value, end = _scan(text, 0)
        # Fewer brackets than levels cannot nest too deep, which spares most records the walk.
        deep = len(text) > 2 * DEEPEST and text.count("{") + text.count("[") > DEEPEST and _is_too_deep(value)
    except StopIteration:
        raise ValueError("it is not JSON") from None
    except RecursionError:
        deep = True
    if deep:
        raise _too_deep()
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value


def _too_deep() -> JournalError:
    # No `ValueError`, which would mean damage: the bytes are what was written.
    return JournalError(f"nested too deep: more than {DEEPEST} levels, and no run of concertino writes such a value")


def _is_too_deep(value: Any) -> bool:
    # Level by level, because a recursion could overflow on exactly the values that it should refuse.
    level = [value]
    for _ in range(DEEPEST):
        containers = [item for item in level if type(item) is dict or type(item) is list]
        if not containers:
            return False
        level = [inner for item in containers for inner in (item.values() if type(item) is dict else item)]
    return any(type(item) is dict or type(item) is list for item in level)


def _record(data: bytes, n: int) -> dict[str, Any]:
    try:
        record = decode_json(data)
    except JournalError as error:
        raise JournalError(f"record {n} is intact but {error}") from None
    if not isinstance(record, dict) or record.get("n") != n:
        raise ValueError("it does not carry the next sequence number")
    return record


def _skimmed(data: bytes, keep: int) -> bytes:
    """The JSON of a result without the end of a long content, and of the content before it was cut for a model."""
    # In the JSON of a text, each quotation mark follows a backslash. So what is found stands outside of texts.
    begin = data.find(_CONTENT, 0, LONG_TEXT) + len(_CONTENT)
    if begin < len(_CONTENT):
        return data
    end = _end_of_text(data, begin)
    head = _head(data, begin, keep) if end - begin > LONG_TEXT else None
    if head is None:
        return data
    rest = data.find(_FULL, end) + len(_FULL)
    last = _end_of_text(data, rest) if rest >= len(_FULL) else -1
    return data[:begin] + head + (data[end:] if last < 0 else data[end:rest] + data[last:])


def _end_of_text(data: bytes, place: int) -> int:
    """Where the quotation mark stands that ends a text; -1 if so many stand inside it that it is faster to decode."""
    for _ in range(_MOST_MARKS):
        place = data.find(b'"', place)
        last = place
        while data[last - 1] == _BACKSLASH:
            last -= 1
        if (place - last) % 2 == 0:  # else the last backslash belongs to the quotation mark
            return place
        place += 1
    return -1


def _head(data: bytes, begin: int, keep: int) -> bytes | None:
    """The begin of a long text; None if it holds so many blanks or escapes that it would not tell much."""
    head = data[begin : begin + keep]
    if head.count(b" ") > keep // 2 or head.count(b"\\") > keep // 32:
        return None
    if b"\\" in head[-_ESCAPE:]:  # which may have been cut
        if b"\\" in head[-2 * _ESCAPE : -_ESCAPE]:
            return None
        head = head[:-_ESCAPE]
    return head if head.isascii() else head.decode("utf-8", "ignore").encode()


def checked_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """A header that may begin a new journal; UsageError if it may not."""
    version = header.get("v")
    known = type(version) is int and 1 <= version <= FORMAT_VERSION
    if header.get("t") != "header" or not known or "n" in header:
        given = {key: header[key] for key in ("t", "v", "n") if key in header}
        raise UsageError(f'A trace header has "t": "header", "v": 1..{FORMAT_VERSION} and no "n"; given: {given!r}.')
    return dict(header)


def require_known(path: Path, header: Mapping[str, Any]) -> None:
    """Refuse a first record that is not a header, or one from a later version."""
    version = header.get("v")
    if header.get("t") != "header" or type(version) is not int:
        raise JournalError(f"{path}: not a trace: its first record is not a header. Give the path of a trace.")
    if version > FORMAT_VERSION:
        raise JournalTooNew(
            f"{path}: written in version {version} of the trace format; this concertino reads up to "
            f"version {FORMAT_VERSION}. Upgrade: pip install --upgrade concertino."
        )


def _place(value: object) -> str:
    """Which field of a record is at fault, if it can be told from the top level."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            try:
                _encode_ascii(part)
            except (TypeError, ValueError, RecursionError):
                return f"field {key!r} "
    return "the value "
