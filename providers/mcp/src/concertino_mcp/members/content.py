"""What a tool answered, as plain JSON data for a model.

| the server sent | the call's content |
|---|---|
| `structuredContent`, and the tool has an output schema | that data, as it is |
| text | the text; several texts with an empty line between them |
| an image, audio | `[image: image/png, 5,120 bytes]` in the text |
| an embedded resource | `[resource: file:///a.txt, text/plain]` and its text, or its size where it is binary |
| a link to a resource | `[link: file:///a.txt (title), text/plain, 120 bytes]` |
| nothing but `structuredContent` | that data |
| nothing | an empty text |

With `binary = "data"`, an answer with binary parts is `{"text": …, "parts": [{"type", "mime_type", "data", …}]}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import mcp_types as types

ERROR_CHARS = 4000
"""Characters of an error's text that are kept beside its cause."""


def to_content(result: types.CallToolResult, *, structured: bool, binary: bool) -> Any:
    """The content of a call that succeeded.

    Args:
        structured: the tool has an output schema.
        binary: keep the data of images, audio and binary resources.
    """
    if result.structured_content is not None and (structured or not result.content):
        return result.structured_content
    text = to_text(result.content)
    if binary:
        parts = [part for block in result.content if (part := _binary(block)) is not None]
        if parts:
            return {"text": text, "parts": parts}
    return text


def to_text(blocks: list[Any]) -> str:
    """Content blocks as one text; binary ones are described."""
    return "\n\n".join(_as_text(block) for block in blocks)


def _as_text(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}: {block.mime_type}, {_bytes(block.data):,} bytes]"
        case "resource":
            resource = block.resource
            kind = f", {resource.mime_type}" if resource.mime_type else ""
            if hasattr(resource, "text"):
                return f"[resource: {resource.uri}{kind}]\n{resource.text}"
            return f"[resource: {resource.uri}{kind}, {_bytes(resource.blob):,} bytes]"
        case "resource_link":
            title = block.title or block.name
            about = [f"[link: {block.uri} ({title})", block.mime_type or ""]
            size = f"{block.size:,} bytes" if block.size is not None else ""
            return ", ".join(filter(None, [*about, size])) + "]"
        case other:
            return f"[{other}]"


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
