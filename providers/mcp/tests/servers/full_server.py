"""A server written with the MCP SDK: every kind of result, failure, notification and annotation.

python full_server.py NOTES            over stdio; what it hears of cancellations is written to the file NOTES
python full_server.py NOTES PORT       over streamable HTTP
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel, ConfigDict

NOTES = Path(sys.argv[1])
server = MCPServer("full", version="1.5", instructions="Ask politely.\nSecond line.")
READS = ToolAnnotations(read_only_hint=True)


class Measured(BaseModel):
    model_config = ConfigDict(extra="forbid")
    celsius: float


def note(text: str) -> None:
    with NOTES.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


@server.tool(annotations=READS, structured_output=False)
def echo(text: str) -> str:
    """Give a text back."""
    return text


@server.tool(annotations=READS)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(idempotent_hint=True), structured_output=False)
def put(key: str) -> str:
    """Put something, as often as one likes."""
    return key


@server.tool(structured_output=False)
def append(text: str) -> str:
    """Append a line to the notes."""
    note(text)
    return "appended"


@server.tool(annotations=READS, structured_output=False)
def show() -> CallToolResult:
    """One of each kind of content."""
    data, sound, blob = (base64.b64encode(head + bytes(96)).decode() for head in (b"\x89PNG", b"RIFF", b"blob"))
    return CallToolResult(
        content=[
            TextContent(text="Look:"),
            ImageContent(data=data, mime_type="image/png"),
            AudioContent(data=sound, mime_type="audio/wav"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///a.txt", mime_type="text/plain", text="inside")),
            EmbeddedResource(resource=BlobResourceContents(uri="file:///b.bin", blob=blob)),
            ResourceLink(name="c", title="The third", uri="file:///c.txt", mime_type="text/plain", size=1200),
        ]
    )


@server.tool(annotations=READS)
def measure() -> Annotated[CallToolResult, Measured]:
    """Data with a schema, and a picture of it."""
    data = base64.b64encode(b"\x89PNG" + bytes(96)).decode()
    return CallToolResult(
        content=[TextContent(text='{"celsius": 4.5}'), ImageContent(data=data, mime_type="image/png")],
        structured_content={"celsius": 4.5},
    )


@server.tool(annotations=READS, structured_output=False)
def refuse(why: str) -> CallToolResult:
    """Fail, saying why."""
    return CallToolResult(content=[TextContent(text=f"it cannot be done: {why}")], is_error=True)


@server.tool(annotations=READS, structured_output=False)
def object_to() -> str:
    """Answer with a protocol error."""
    raise MCPError(code=-32050, message="no such record", data={"id": 7})


@server.tool(annotations=READS, structured_output=False)
async def wait(seconds: float, ctx: Context) -> str:
    """Wait, telling of the progress."""
    note("wait began")
    steps = max(1, round(seconds / 0.1))
    try:
        for step in range(steps):
            await ctx.report_progress(step + 1, steps, f"step {step + 1}")
            await asyncio.sleep(seconds / steps)
    except asyncio.CancelledError:
        note("wait was cancelled")
        raise
    note("wait ended")
    return "waited"


@server.tool(annotations=READS, structured_output=False)
async def log(text: str, ctx: Context) -> str:
    """Send a log message."""
    await ctx.session.send_log_message("warning", text, logger="inner", related_request_id=ctx.request_id)
    return "logged"


@server.tool(structured_output=False)
async def grow(ctx: Context) -> str:
    """Offer one more tool from now on, and tell."""
    server.add_tool(lambda: "grown", name="grown", description="A tool that was not there.", structured_output=False)
    await ctx.notify_tools_changed()
    return "grew"


@server.tool(annotations=READS, structured_output=False)
def environment(name: str) -> str:
    """An environment variable of the server."""
    return os.environ.get(name, "(not set)")


if len(sys.argv) > 2:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run("stdio")
