"""Responses: what a client reads of a run, as events or as one object.

A call of the pool is an item `mcp_call`, which was made already, never a `function_call`, which a client would make; if
it waits for a decision, an `mcp_approval_request`. A call of a client's own tool is a `function_call`.

Invariants: the events follow from the moments of the run, so they have the same numbers whenever they are read. Each
item is added once, done once, and is the same in the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .api_error import ApiError
from .chat_wire import CUT_SHORT
from .client_tools import call_key
from .event_stream import compact_json
from .request_record import RequestRecord
from .run_moments import Moment
from .run_story import RunStory, ServedCall, Step

SERVER_LABEL = "concertino"


class Frame(NamedTuple):
    """An event, with its number."""

    number: int
    text: str


class ResponseStream:
    """The events of one run.

    Args:
        run_id: of the response: that of its run, or of a part of it.

    Attributes:
        output: the items so far.
    """

    def __init__(self, run_id: str, request: RequestRecord) -> None:
        self.story = RunStory.of(request)
        self.output: list[dict[str, Any]] = []
        self._id = run_id
        self._request = request
        self._next = 0
        self._places: dict[str, int] = {}
        self._message: dict[str, Any] | None = None
        self._told: list[str] = []
        self._delta = ""

    def take(self, moments: list[Moment]) -> Iterator[Frame]:
        """The events of some moments."""
        if not self._next:
            for kind in ("response.created", "response.in_progress"):
                yield self._event(kind, response=self.response("in_progress"))
        for moment in moments:
            for step in self.story.take(moment):
                yield from self._step(step)

    def close(self) -> Iterator[Frame]:
        """The last events: open items are done, and so is the response."""
        for step in self.story.close():
            yield from self._step(step)
        yield from self._close_message("completed")
        last = self.response(status := status_of(self.story))
        yield self._event(f"response.{'failed' if status == 'cancelled' else status}", response=last)

    def response(self, status: str) -> dict[str, Any]:
        """The object, as far as the run has got."""
        story, request = self.story, self._request
        error = None
        if status == "failed":
            error = {"code": "server_error", "message": str(ApiError.of_run(story.stop))}
        usage = _usage(story) if story.usage else None
        form: dict[str, Any] = {"type": "text"} if request.schema is None else {"type": "json_schema", "name": "answer"}
        if request.schema is not None:
            form["schema"] = dict(request.schema)
        return {
            "id": self._id,
            "object": "response",
            "conversation": {"id": request.conversation} if request.conversation else None,
            "created_at": request.created,
            "status": status,
            "background": request.background,
            "error": error,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": request.instructions or None,
            "max_output_tokens": None,
            "metadata": dict(request.metadata),
            "model": request.preset,
            "output": [dict(item) for item in self.output],
            "parallel_tool_calls": True,
            "previous_response_id": request.previous or None,
            "temperature": None,
            "text": {"format": form},
            "tool_choice": "auto",
            "tools": [{"type": "function", "strict": None, **tool} for tool in request.tools],
            "top_p": None,
            "truncation": "disabled",
            "usage": usage,
        }

    # -- items -----------------------------------------------------------------------------------------------------

    def _step(self, step: Step) -> Iterator[Frame]:
        if step.call is not None:
            tell = {"opened": self._call_opened, "closed": self._call_closed, "waits": self._call_waits}[step.kind]
            yield from tell(step.call)
            return
        if step.kind == "rewritten":
            yield from self._close_message("incomplete")
        if self._message is None:
            yield from self._open_message()
        self._told.append(step.text)
        yield self._numbered("response.output_text.delta", f'{self._delta},"delta":{compact_json(step.text)}')

    def _open_message(self) -> Iterator[Frame]:
        place = len(self.output)
        self._message = {"id": f"{self._id}.message.{place}", "type": "message", "role": "assistant"}
        self.output.append(self._message)
        self._message |= {"status": "in_progress", "content": []}
        yield self._event("response.output_item.added", output_index=place, item=self._message)
        where = {"item_id": self._message["id"], "output_index": place, "content_index": 0}
        # Made once: a delta costs the JSON of its text.
        self._delta = f'{compact_json(where)[:-1]},"logprobs":[]'
        yield self._event("response.content_part.added", **where, part=_text_part(""))

    def _close_message(self, status: str) -> Iterator[Frame]:
        message, self._message = self._message, None
        if message is None:
            return
        place, text = self.output.index(message), "".join(self._told)
        self._told = []
        where = {"item_id": message["id"], "output_index": place, "content_index": 0}
        yield self._event("response.output_text.done", **where, text=text, logprobs=[])
        yield self._event("response.content_part.done", **where, part=_text_part(text))
        message |= {"status": status, "content": [_text_part(text)]}
        yield self._event("response.output_item.done", output_index=place, item=message)

    def _call_opened(self, call: ServedCall) -> Iterator[Frame]:
        place = self._places[call.id] = len(self.output)
        item = {"id": f"{self._id}.call.{call.id}", "type": "mcp_call", "server_label": SERVER_LABEL}
        item |= {"name": call.name, "arguments": "", "status": "in_progress"}
        self.output.append(item)
        where = {"item_id": item["id"], "output_index": place}
        yield self._event("response.output_item.added", output_index=place, item=item)
        yield self._event("response.mcp_call.in_progress", **where)
        yield self._event("response.mcp_call_arguments.delta", **where, delta=call.arguments)
        yield self._event("response.mcp_call_arguments.done", **where, arguments=call.arguments)
        item["arguments"] = call.arguments

    def _call_closed(self, call: ServedCall) -> Iterator[Frame]:
        place = self._places[call.id]
        item: dict[str, Any] = self.output[place]
        if call.error is None:
            item |= {"status": "completed", "output": call.output}
        else:
            said = [{"type": "text", "text": call.error}]
            item |= {"status": "failed", "error": {"type": "mcp_tool_execution_error", "content": said}}
        yield self._event(f"response.mcp_call.{item['status']}", item_id=item["id"], output_index=place)
        yield self._event("response.output_item.done", output_index=place, item=item)

    def _call_waits(self, call: ServedCall) -> Iterator[Frame]:
        place, key = len(self.output), call_key(self._id.partition(".")[0], call.id)
        item: dict[str, Any] = {"id": key, "type": "mcp_approval_request", "server_label": SERVER_LABEL}
        if call.for_client:
            item = {"id": f"{self._id}.function.{call.id}", "type": "function_call", "call_id": key}
            item["status"] = "in_progress"
        item |= {"name": call.name, "arguments": "" if call.for_client else call.arguments}
        self.output.append(item)
        yield self._event("response.output_item.added", output_index=place, item=item)
        if call.for_client:
            where = {"item_id": item["id"], "output_index": place}
            yield self._event("response.function_call_arguments.delta", **where, delta=call.arguments)
            said = {"name": call.name, "arguments": call.arguments}
            yield self._event("response.function_call_arguments.done", **where, **said)
            item |= {"arguments": call.arguments, "status": "completed"}
        yield self._event("response.output_item.done", output_index=place, item=item)

    def _event(self, kind: str, **fields: Any) -> Frame:
        return self._numbered(kind, compact_json(fields)[:-1])

    def _numbered(self, kind: str, fields: str) -> Frame:
        """An event of which the fields are written, but for its kind, its number and the last brace."""
        number, self._next = self._next, self._next + 1
        data = f'{fields},"type":"{kind}","sequence_number":{number}}}'
        return Frame(number, f"event: {kind}\ndata: {data}\n\n")


def response_now(run_id: str, request: RequestRecord, moments: list[Moment], *, over: bool) -> dict[str, Any]:
    """The object of a run.

    Args:
        over: it is no longer under way.
    """
    stream = ResponseStream(run_id, request)
    for _ in stream.take(moments):
        pass
    if not over:
        return stream.response("in_progress")
    for _ in stream.close():
        pass
    return stream.response(status_of(stream.story))


def status_of(story: RunStory) -> str:
    """What became of a run that is over. One that waits for its client is complete as an answer."""
    if story.suspended:
        return "completed"
    if story.answer is None:
        return "cancelled" if story.stop == "cancelled" else "failed"
    return "incomplete" if story.stop in CUT_SHORT else "completed"


def _usage(story: RunStory) -> dict[str, Any]:
    used = story.usage
    read, written = used.get("input_tokens", 0), used.get("output_tokens", 0)
    cached = {"cached_tokens": used.get("cached_tokens", 0), "cache_write_tokens": used.get("cache_write_tokens", 0)}
    return {
        "input_tokens": read,
        "input_tokens_details": cached,
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
        "usd": round(used.get("usd", 0.0), 9),
    }


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
