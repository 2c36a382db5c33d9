"""The pool that the official conformance suite of MCP tests: `conformance_pool.py FOLDER PORT`. The suite gives the
names of the tools and what they answer."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import concertino as ct
import uvicorn
from concertino_serve.serve_settings import McpOffer, Preset, ServeSettings
from concertino_serve.web_app import application_of

TASK_SECONDS = 0.25
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "


@ct.tool
def test_simple_text() -> str:
    """Say a text."""
    return "This is a simple text response for testing."


@ct.tool
def test_image_content() -> ct.Result:
    """Give an image."""
    return ct.Result("an image", attachments=(ct.Image(PNG),))


@ct.tool
def test_audio_content() -> ct.Result:
    """Give a sound."""
    return ct.Result("a sound", attachments=(ct.Audio(WAV, media_type="audio/wav"),))


@ct.tool
def test_embedded_resource() -> ct.Result:
    """Give a file."""
    return ct.Result(
        "a file", attachments=(ct.File(b"This is an embedded resource content.", media_type="text/plain"),)
    )


@ct.tool
def test_multiple_content_types() -> ct.Result:
    """Give several things."""
    text = "Multiple content types test:"
    return ct.Result(text, attachments=(ct.Image(PNG), ct.File(b"{}", media_type="application/json")))


@ct.tool
def test_error_handling() -> str:
    """Fail."""
    raise ct.CallFailed.because("This tool intentionally returns an error for testing")


@ct.tool
async def test_tool_with_progress(ctx: ct.Context) -> str:
    """Report progress."""
    for done in (0.1, 50, 100):
        ctx.progress(done, 100)
        await asyncio.sleep(0.15)
    return "done"


@ct.tool
def greet(name: str) -> str:
    """Greet at once."""
    return f"Hello, {name}!"


@ct.tool
async def slow_compute(seconds: float, label: str = "") -> str:
    """Take longer than a call may until it becomes a task."""
    await asyncio.sleep(max(seconds, 2 * TASK_SECONDS))
    return f"took {seconds:g} s"


@ct.tool
async def failing_job() -> str:
    """Fail after a while."""
    await asyncio.sleep(2 * TASK_SECONDS)
    raise ct.CallFailed.because("it fails for the test")


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADED = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
WITH_SCHEMA = ct.ToolSpec.from_schema("json_schema_2020_12_tool", "Has a schema.", SCHEMA, lambda given: "fine")
WITH_HEADER = ct.ToolSpec.from_schema("headed", "Has an argument that is a header too.", HEADED, lambda given: "fine")
TOOLS = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_progress,
    greet,
    slow_compute,
    failing_job,
    WITH_SCHEMA,
    WITH_HEADER,
)


class Model(ct.Model):
    """Answers at once."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        return ct.Reply("".join(ct.ParallelRounds().write_answer("fine")))


def main(folder: Path, port: int) -> None:
    pool = ct.Pool.of(*TOOLS, ct.ModelSpec("m/lead", Model)).bind(orchestrator="m/lead")
    offer = McpOffer(task_seconds=TASK_SECONDS)
    settings = ServeSettings({"helper": Preset("helper", pool)}, traces=folder / "traces", mcp=offer)
    uvicorn.Server(uvicorn.Config(application_of(settings).gate, port=port, log_config=None)).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
