"""What a tool answered, as plain JSON data for a model, and what is not text as attachments.

| the server sent | the call's content |
|---|---|
| `structuredContent`, and the tool has an output schema | that data; of images and the like beside it, the marks |
| text | the text; several texts with an empty line between them |
| an image, audio | a mark in the text, `[image image.png 1f3a9c0b2d4e]`, that stands for the attachment |
| an embedded resource | `[resource: file:///a.txt, text/plain]`, and its text, or a mark where it is binary |
| a link to a resource | `[link: file:///a.txt (title), text/plain, 120 bytes]` |
| nothing but `structuredContent` | that data |
| nothing | an empty text |

With `binary = "describe"`, a type and a size stand in place of the marks. With `binary = "data"`, an answer with binary
parts is `{"text": …, "parts": [{"type", "mime_type", "data", …}]}`.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from concertino import Attachment, Audio, File, Image, Result, UsageError

if TYPE_CHECKING:
    import mcp_types as types

    from concertino_mcp.settings import Binary

ERROR_CHARS = 4000
"""Characters of an error's text that are kept beside its cause."""
_KINDS: dict[str, type[Attachment]] = {"image": Image, "audio": Audio}


def to_content(result: types.CallToolResult, *, structured: bool, binary: Binary) -> Any:
    """The content of a call that succeeded; a `Result` where it has attachments.

    Args:
        structured: the tool has an output schema.
        binary: what becomes of images, audio and binary resources.
    """
    attached: list[Attachment] = []
    if result.structured_content is not None and (structured or not result.content):
        if binary == "attach":
            to_text(result.content, attached)  # for what it attaches: the texts say what the data says
        return Result(result.structured_content, attachments=tuple(attached)) if attached else result.structured_content
    if binary == "attach":
        text = to_text(result.content, attached)
        return Result(text, attachments=tuple(attached)) if attached else text
    text = to_text(result.content)
    if binary == "data":
        parts = [part for block in result.content if (part := _binary(block)) is not None]
        if parts:
            return {"text": text, "parts": parts}
    return text


def to_text(blocks: list[Any], attached: list[Attachment] | None = None) -> str:
    """Content blocks as one text.

    Args:
        attached: takes the attachments that marks in the text stand for; without it, binary blocks are described.
    """
    return "\n\n".join(_as_text(block, attached) for block in blocks)


def _as_text(block: Any, attached: list[Attachment] | None) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            mark = _attach(block.data, block.mime_type or "", "", attached)
            return mark or f"[{block.type}: {block.mime_type}, {_bytes(block.data):,} bytes]"
        case "resource":
            resource = block.resource
            kind = f", {resource.mime_type}" if resource.mime_type else ""
            if hasattr(resource, "text"):
                return f"[resource: {resource.uri}{kind}]\n{resource.text}"
            mark = _attach(resource.blob, resource.mime_type or "", str(resource.uri), attached)
            if mark:
                return f"[resource: {resource.uri}{kind}]\n{mark}"
            return f"[resource: {resource.uri}{kind}, {_bytes(resource.blob):,} bytes]"
        case "resource_link":
            title = block.title or block.name
            about = [f"[link: {block.uri} ({title})", block.mime_type or ""]
            size = f"{block.size:,} bytes" if block.size is not None else ""
            return ", ".join(filter(None, [*about, size])) + "]"
        case other:
            return f"[{other}]"


def _attach(data: str, mime_type: str, uri: str, attached: list[Attachment] | None) -> str:
    """Attach a binary block; its mark, empty where it is to be described, or is no attachment."""
    if attached is None:
        return ""
    try:
        name = unquote(urlsplit(uri).path).rstrip("/").rpartition("/")[2]
        mime_type = mime_type or mimetypes.guess_type(name)[0] or ""
        kind = _KINDS.get(mime_type.partition("/")[0], File)
        name = name or f"{kind.kind}{mimetypes.guess_extension(mime_type) or ''}"
        found = kind(base64.b64decode(data, validate=True), name=name, media_type=mime_type)
    except (binascii.Error, ValueError, UsageError):  # no base64, no URI; empty, or too large
        return ""
    attached.append(found)
    return found.mark


def _binary(block: Any) -> dict[str, Any] | None:
    if block.type in ("image", "audio"):
        return {"type": block.type, "mime_type": block.mime_type, "data": block.data}
    if block.type == "resource" and hasattr(block.resource, "blob"):
        resource = block.resource
        return {
            "type": "resource",
            "uri": str(resource.uri),
            "mime_type": resource.mime_type or "",
            "data": resource.blob,
        }
    return None


def _bytes(data: str) -> int:
    """How many bytes a text in base64 stands for."""
    return max(0, len(data) * 3 // 4 - data[-2:].count("="))
