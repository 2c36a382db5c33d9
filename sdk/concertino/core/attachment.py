"""Attachments: images, audio and files beside the text of a question, a result or a message.

    await leader.run(["What is this?", ct.Image("cat.png"), ct.File("report.pdf")], pool=pool)

In texts an attachment is a *mark* such as `[image cat.png 1f3a9c0b2d4e]`: its kind, its name and the beginning of its
SHA-256. Models that are asked with a text get what its marks stand for; traces hold the marks, and the bytes in side
files. So prompts, plans and answers can name an attachment, and an agent that is given a mark can pass it on.

Invariant: a mark stands for bytes that the run was given or that a call of it returned, and for nothing else: whatever
a text claims, no file is opened for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .errors import UsageError

if TYPE_CHECKING:
    from .model import Message

LIMIT = 20 * 2**20
"""Bytes of one attachment at most."""
_MARK = re.compile(r"\[(?:image|audio|file) [^\[\]\n]{1,80} ([0-9a-f]{12})\]")
_UNFIT = re.compile(r"[^\w.() -]+")
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)


class Attachment:
    """Something beside a text: an `Image`, `Audio` or `File`.

    Args:
        source: a path, the bytes themselves, or an address (`https://…`, `data:…`). Files are read at once; addresses
            are passed on to the model's service and never opened here.
        name: how texts call it; by default the file's name.
        media_type: such as `image/png`; by default told by the bytes or the name.

    Raises:
        UsageError: the file cannot be read, is empty or too large, or nobody knows what it is.
    """

    kind: ClassVar[str] = "file"
    made: ClassVar[bool] = False
    """Whether this process has made any: without one, nobody looks for them."""

    def __init__(self, source: str | PathLike[str] | bytes, *, name: str = "", media_type: str = "") -> None:
        Attachment.made = True
        self.url = ""
        found = ""
        if isinstance(source, (bytes, bytearray)):
            self.data = bytes(source)
        elif isinstance(source, str) and source.startswith("data:"):
            media_type, self.data = _of_data_url(source)
        elif isinstance(source, str) and source.startswith(("https://", "http://")):
            self.url, self.data = source, b""
            found = source.split("?", 1)[0].rstrip("/").rpartition("/")[2]
        else:
            self.data, found = _read(source, type(self).__name__), Path(source).name
        if len(self.data) > LIMIT:
            raise UsageError(f"{type(self).__name__}({_shown(source)}) has {len(self.data):,} bytes; at most {LIMIT:,}")
        if not self.data and not self.url:
            raise UsageError(f"{type(self).__name__}({_shown(source)}) is empty")
        self.media_type = media_type or _guess(self.data, found)
        if self.kind != "file" and not self.media_type.startswith(f"{self.kind}/") and not self.url:
            raise UsageError(
                f"{type(self).__name__}({_shown(source)}) is {self.media_type or 'of an unknown type'}; give "
                f"media_type='{self.kind}/...', or use File"
            )
        self.name = _UNFIT.sub("_", name or found)[:80].strip() or self.kind

    @cached_property
    def sha256(self) -> str:
        """Of the bytes, or of the address."""
        return hashlib.sha256(self.data or self.url.encode()).hexdigest()

    @property
    def mark(self) -> str:
        """What stands for it in a text."""
        return f"[{self.kind} {self.name} {self.sha256[:12]}]"

    @property
    def data_url(self) -> str:
        """The address, or the bytes as one."""
        if self.url:
            return self.url
        return f"data:{self.media_type or 'application/octet-stream'};base64,{self.base64}"

    @property
    def base64(self) -> str:
        """The bytes as text."""
        import base64  # few runs have attachments, and every process imports this module

        return base64.b64encode(self.data).decode()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data: everything but the bytes."""
        data = {"kind": self.kind, "name": self.name, "media_type": self.media_type, "sha256": self.sha256}
        return {**data, "url": self.url} if self.url else {**data, "bytes": len(self.data)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any], data: bytes = b"") -> Attachment:
        """The inverse of `to_json`, with the bytes from elsewhere."""
        made = _KINDS[record["kind"]].__new__(_KINDS[record["kind"]])
        Attachment.made = True
        made.name, made.media_type, made.url = record["name"], record["media_type"], record.get("url", "")
        made.data = data
        made.__dict__["sha256"] = record["sha256"]
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attachment) and (self.kind, self.sha256) == (other.kind, other.sha256)

    def __hash__(self) -> int:
        return hash((self.kind, self.sha256))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.media_type or 'address'}, {len(self.data):,} bytes)"


class Image(Attachment):
    """An image."""

    kind = "image"


class Audio(Attachment):
    """A sound."""

    kind = "audio"


class File(Attachment):
    """Any other file, such as a PDF."""

    kind = "file"


_KINDS: dict[str, type[Attachment]] = {kind.kind: kind for kind in (Image, Audio, File)}


def take_attachments(value: Any) -> tuple[Any, list[Attachment]]:
    """A result with marks in place of attachments, and these: the value itself, or items of a list or dict."""
    if isinstance(value, Attachment):
        return value.mark, [value]
    if isinstance(value, (list, tuple)):
        found = [item for item in value if isinstance(item, Attachment)]
        return [item.mark if isinstance(item, Attachment) else item for item in value] if found else value, found
    if isinstance(value, dict):
        found = [item for item in value.values() if isinstance(item, Attachment)]
        if found:
            value = {key: item.mark if isinstance(item, Attachment) else item for key, item in value.items()}
        return value, found
    return value, []


def give_attachments(content: Any, known: Mapping[str, Attachment]) -> Any:
    """The inverse of `take_attachments`: attachments in place of the marks that stand alone, in a list or in a dict.

    Args:
        known: attachments by their mark.
    """
    if isinstance(content, str):
        return known.get(content, content)
    if isinstance(content, list):
        return [known.get(item, item) if isinstance(item, str) else item for item in content]
    if isinstance(content, dict):
        return {key: known.get(item, item) if isinstance(item, str) else item for key, item in content.items()}
    return content


def attachments_in(content: Any, known: Mapping[str, Attachment]) -> list[Attachment]:
    """The attachments whose marks a result holds, in their order.

    Args:
        known: attachments by their mark.
    """
    texts = content if isinstance(content, list) else content.values() if isinstance(content, dict) else (content,)
    marks = [found[0] for text in texts if isinstance(text, str) for found in _MARK.finditer(text)]
    return [known[mark] for mark in dict.fromkeys(marks) if mark in known]


def with_attachments(messages: Sequence[Message], known: Mapping[str, Attachment]) -> list[Message]:
    """The messages with what their marks stand for.

    Args:
        known: attachments by the first 12 digits of their SHA-256.
    """
    from dataclasses import replace

    found = list(messages)
    for place, message in enumerate(found):
        if message.role not in ("user", "tool") or "[" not in message.text:
            continue
        marks = dict.fromkeys(_MARK.findall(message.text))
        meant = [known[mark] for mark in marks if mark in known and known[mark] not in message.attachments]
        if meant:
            found[place] = replace(message, attachments=(*message.attachments, *meant))
    return found


def _read(source: Any, kind: str) -> bytes:
    try:
        path = Path(source)
        if path.stat().st_size > LIMIT:
            raise UsageError(f"{kind}({_shown(source)}) has {path.stat().st_size:,} bytes; at most {LIMIT:,}")
        return path.read_bytes()
    except TypeError:
        raise UsageError(f"{kind}({_shown(source)}): expected a path, bytes, or an address") from None
    except OSError as error:
        raise UsageError(f"{kind}({_shown(source)}): {error.strerror or error}") from None


def _of_data_url(text: str) -> tuple[str, bytes]:
    import base64
    import binascii

    head, comma, body = text[5:].partition(",")
    media_type, _, encoding = head.partition(";")
    try:
        if not comma or encoding != "base64":
            raise ValueError
        return media_type, base64.b64decode(body, validate=True)
    except (ValueError, binascii.Error):
        raise UsageError(f"{_shown(text)}: expected data:<media type>;base64,<bytes>") from None


def _guess(data: bytes, name: str) -> str:
    for beginning, media_type in _BEGINNINGS:
        if data.startswith(beginning):
            return media_type
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "")
    import mimetypes

    return mimetypes.guess_type(name)[0] or ""


def _shown(source: Any) -> str:
    text = repr(source)
    return text if len(text) <= 60 else f"{text[:57]}..."
