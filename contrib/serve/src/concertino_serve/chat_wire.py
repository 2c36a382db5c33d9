"""Chat completions: what a client reads of a run, as a stream or as one object.

A call of the pool is a line of `reasoning_content`, never a function call, which a client would try to make. A call of
a client's own tool is a function call.

Invariant: both come from the same story. The deltas of a stream add up to the message of the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .api_error import ApiError
from .client_tools import call_key
from .event_stream import compact_json
from .request_record import RequestRecord
from .run_moments import Moment
from .run_story import RunStory, ServedCall, Step

CUT_SHORT = ("budget", "deadline", "rounds")
"""Ends that cut a run short: the answer was made of what was known by then."""
_ARGUMENTS = 200


class ChatStream:
    """The frames of one run.

    Args:
        run_id: of the completion: that of its run, or of a part of it.
    """

    def __init__(self, run_id: str, request: RequestRecord) -> None:
        self.story = RunStory.of(request)
        self._run_id = run_id
        self._usage = request.usage
        head = {
            "id": run_id,
            "object": "chat.completion.chunk",
            "created": request.created,
            "model": request.preset,
        }
        # Made once: a chunk costs the JSON of its delta.
        self._head = f"data: {compact_json(head)[:-1]}"
        empty = ',"usage":null' if request.usage else ""
        self._tail = f',"finish_reason":null}}]{empty}}}\n\n'
        self._begun = False

    def frames(self, moments: list[Moment]) -> bytes:
        """What the moments add to the stream."""
        found = [] if self._begun else [self._chunk('{"role":"assistant","content":""}')]
        self._begun = True
        found += [frame for moment in moments for step in self.story.take(moment) for frame in self._frames(step)]
        return "".join(found).encode()

    def last_frames(self) -> bytes:
        """The end of the stream: a reason, the usage where it was asked for, and the mark of the end; or an error."""
        found: list[str] = []
        for step in self.story.close():
            if step.kind == "rewritten":
                return "".join([*found, _error(_rewritten())]).encode()
            found += self._frames(step)
        calls = self.story.for_client
        if self.story.answer is None and not calls:
            return "".join([*found, _error(ApiError.of_run(self.story.stop))]).encode()
        for place, call in enumerate(calls):
            asked = {"index": place, **_function_call(self._run_id, call)}
            found.append(self._chunk(compact_json({"tool_calls": [asked]})))
        empty = ',"usage":null' if self._usage else ""
        reason = _finish_reason(self.story)
        found.append(f'{self._head},"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]{empty}}}\n\n')
        if self._usage:
            found.append(f'{self._head},"choices":[],"usage":{compact_json(usage_of(self.story))}}}\n\n')
        return "".join([*found, "data: [DONE]\n\n"]).encode()

    def _frames(self, step: Step) -> Iterator[str]:
        if step.kind == "text":
            yield self._chunk(f'{{"content":{compact_json(step.text)}}}')
        elif step.call is not None and step.kind != "waits":
            yield self._chunk(f'{{"reasoning_content":{compact_json(_line(step))}}}')

    def _chunk(self, delta: str) -> str:
        return f'{self._head},"choices":[{{"index":0,"delta":{delta}{self._tail}'


def completion(run_id: str, request: RequestRecord, moments: list[Moment]) -> dict[str, Any]:
    """The object of a run that is over.

    Raises:
        ApiError: it ended without an answer.
    """
    story = RunStory.of(request)
    steps = [*story.take_all(moments), *story.close()]
    calls = [_function_call(run_id, call) for call in story.for_client]
    if story.answer is None and not calls:
        raise ApiError.of_run(story.stop)
    lines = "".join(_line(step) for step in steps if step.call is not None and step.kind != "waits")
    message: dict[str, Any] = {"role": "assistant", "content": story.answer, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    return {
        "id": run_id,
        "object": "chat.completion",
        "created": request.created,
        "model": request.preset,
        "choices": [
            {
                "index": 0,
                "finish_reason": _finish_reason(story),
                "message": {**message, "reasoning_content": lines} if lines else message,
            }
        ],
        "usage": usage_of(story),
    }


def usage_of(story: RunStory) -> dict[str, Any]:
    """What the whole run used: the leader, the calls and all below them."""
    used = story.usage
    read, written = used.get("input_tokens", 0), used.get("output_tokens", 0)
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": used.get("cached_tokens", 0)},
        "completion_tokens_details": {"reasoning_tokens": 0},
        "usd": round(used.get("usd", 0.0), 9),
    }


def _function_call(run_id: str, call: ServedCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call_key(run_id.partition(".")[0], call.id), "type": "function", "function": function}


def _finish_reason(story: RunStory) -> str:
    if story.for_client:
        return "tool_calls"
    return "length" if story.stop in CUT_SHORT else "stop"


def _line(step: Step) -> str:
    call = step.call
    assert call is not None
    if step.kind == "opened":
        return f"{call.id} {call.name} {_short(call.arguments)}\n"
    return f"{call.id} {call.name}: {_result(call)}\n"


def _result(call: ServedCall) -> str:
    return "done" if call.error is None else f"failed, {_short(call.error)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _ARGUMENTS else f"{line[:_ARGUMENTS]}..."


def _rewritten() -> ApiError:
    return ApiError(
        502,
        "the answer was written again, and is another one than was streamed; ask again with the same idempotency key "
        "for the whole answer, which costs nothing",
        code="answer_rewritten",
    )


def _error(error: ApiError) -> str:
    return f"data: {compact_json(error.to_json())}\n\n"
