"""What an MCP client reads of a run that is over.

Invariant: it is a fold over the moments of the run, so a call that is told again is told the same. Known secrets are
hidden in it as in the trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import mcp_types as types
from concertino.core.attachment import Attachment
from concertino.traces.blobs import BlobStore

from .api_error import ApiError
from .chat_wire import usage_of
from .run_moments import Moment
from .run_story import RunStory
from .served_run import ServedRun

_ABOUT = "concertino/"
"""What begins the keys of ours in `_meta`."""
_MARKS = "attachments"


def result_of(run: ServedRun, moments: Iterable[Moment], *, modern: bool) -> types.CallToolResult:
    """The result of the run of a call.

    Args:
        modern: the client speaks 2026-07-28 or later, where structured content may be of any type.
    """
    story = RunStory.of(run.request)
    for moment in moments:
        for _ in story.take(moment):
            pass
    for _ in story.close():
        pass
    made = _of_member(run, story, modern=modern) if run.request.member else _of_answer(story)
    made.meta = {f"{_ABOUT}run": run.id, **(made.meta or {})}
    return made


def refusal(error: ApiError) -> types.CallToolResult:
    """The result of a call that was not begun, or that ended without an answer."""
    about: dict[str, Any] = {f"{_ABOUT}code": error.code}
    if error.retry_after is not None:
        about[f"{_ABOUT}retry-after"] = round(error.retry_after, 1)
    return types.CallToolResult(content=[_text(f"{error.code}: {error}")], is_error=True, _meta=about)


def _of_answer(story: RunStory) -> types.CallToolResult:
    if story.answer is None:
        return refusal(ApiError.of_run(story.stop))
    told = {
        "answer": story.answer,
        "stop": story.stop,
        "calls": len(story.calls),
        "usd": usage_of(story)["usd"],
    }
    return types.CallToolResult(content=[_text(story.answer)], structured_content=told)


def _of_member(run: ServedRun, story: RunStory, *, modern: bool) -> types.CallToolResult:
    call = next(iter(story.calls.values()), None)
    if call is None or (call.error is not None and story.answer is None):
        return refusal(ApiError.of_run(story.stop))
    if call.error is not None:
        code = call.error.partition(":")[0]
        return types.CallToolResult(content=[_text(call.error)], is_error=True, _meta={f"{_ABOUT}code": code})
    content = call.content
    attached = [_attachment(run, record) for record in call.attached]
    if attached and isinstance(content, dict):
        # They were put there after the check against the schema of results, which knows nothing of them.
        content = {key: value for key, value in content.items() if key != _MARKS}
    data = None if isinstance(content, str) or not (modern or isinstance(content, dict)) else content
    blocks = [_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False))]
    return types.CallToolResult(content=[*blocks, *map(_block, attached)], structured_content=data)


def _attachment(run: ServedRun, record: Mapping[str, Any]) -> Attachment:
    stored = {"$blob": record["sha256"], "bytes": record.get("bytes")}
    return Attachment.from_json(record, b"" if record.get("url") else BlobStore(run.trace).read(stored))


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _block(found: Attachment) -> types.ContentBlock:
    if found.url:
        return types.ResourceLink(
            type="resource_link", uri=found.url, name=found.name, mime_type=found.media_type or None
        )
    if found.kind == "image":
        return types.ImageContent(type="image", data=found.base64, mime_type=found.media_type)
    if found.kind == "audio":
        return types.AudioContent(type="audio", data=found.base64, mime_type=found.media_type)
    held = types.BlobResourceContents(
        uri=f"attachment:{found.sha256}", mime_type=found.media_type or None, blob=found.base64
    )
    return types.EmbeddedResource(type="resource", resource=held)
