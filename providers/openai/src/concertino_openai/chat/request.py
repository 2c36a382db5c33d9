"""Requests: a `ChatRequest` as the body that a server of some dialect wants.

What every request shares is computed once. Opaque data of a server (`extra`) goes back to the endpoint that it came
from and to no other, because the signature of one model makes another refuse the conversation.

Invariant: the request is read, never changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from concertino import Attachment, ChatRequest, Message, Sampling, ToolCall
from concertino.text import NAMELESS, ToolQuoting

from concertino_openai.dialects import ServerDialect

WITH_TOOLS_ONLY = ("tool_choice", "parallel_tool_calls")
"""Extra fields that a server refuses in a request without tools."""

_FORMATS = {"mpeg": "mp3", "wave": "wav"}
_ASK_FOR_JSON = "Answer with one JSON value that satisfies this JSON schema, and with nothing else:"


class RequestWriter:
    """Writes requests to one model.

    Args:
        model: the name that the server knows it by.
        dialect: of the server.
        endpoint: whose opaque data may be sent.
        extra: further fields for every request.
    """

    def __init__(self, model: str, dialect: ServerDialect, endpoint: str, extra: Mapping[str, Any]) -> None:
        self._dialect = dialect
        self._endpoint = endpoint
        self._fixed: dict[str, Any] = {"model": model}
        if dialect.stream:
            self._fixed["stream"] = True
            if dialect.stream_usage:
                self._fixed["stream_options"] = {"include_usage": True}
        given = dict(extra)
        self._tools_only = {name: given.pop(name) for name in WITH_TOOLS_ONLY if name in given}
        self._fixed.update(given)
        self._quote_tools = ToolQuoting()

    def write(self, request: ChatRequest) -> bytes:
        """The body of a request."""
        return json.dumps(self.body(request), separators=(",", ":")).encode()

    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The body of a request as data; what it says holds no control token of a chat template."""
        request = request.quoted(self._quote_tools)
        messages = self._messages(request.messages)
        body: dict[str, Any] = {**self._fixed, "messages": messages}
        if request.tools:
            body["tools"] = list(request.tools)
            body.update(self._tools_only)
        if request.schema is not None:
            self._ask_for_schema(body, messages, dict(request.schema))
        self._sampling(body, request.sampling)
        return body

    def _sampling(self, body: dict[str, Any], sampling: Sampling) -> None:
        dialect = self._dialect
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        if sampling.top_p is not None:
            body["top_p"] = sampling.top_p
        if sampling.max_tokens is not None:
            body[dialect.max_tokens_field] = sampling.max_tokens
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if sampling.seed is not None and dialect.seed:
            body["seed"] = sampling.seed
        if sampling.logprobs:
            if dialect.logprobs:
                body["logprobs"] = True
                # `extra_body` may ask for more alternatives.
                body.setdefault("top_logprobs", 0)
            if dialect.token_ids:
                body["return_token_ids"] = True

    # -- messages --------------------------------------------------------------------------------------------------

    def _messages(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        written: list[dict[str, Any]] = []
        waiting: list[str] = []  # ids, made up here, of calls that came without one
        shown: list[Attachment] = []  # of results, which hold text alone
        for message in messages:
            if message.role == "tool":
                # Results without an id belong to the calls without one, in order.
                call_id = message.call_id or (waiting.pop(0) if waiting else "call")
                written.append({"role": "tool", "tool_call_id": call_id, "content": message.text})
                shown += message.attachments
                continue
            if shown:  # the results of a turn must follow each other
                written.append(_beside(shown))
                shown = []
            if message.role == "assistant":
                written.append(self._assistant(message, len(written), waiting))
            elif message.attachments:
                parts = [{"type": "text", "text": message.text}, *map(_part, message.attachments)]
                written.append({"role": message.role, "content": parts})
            elif message.text or message.role != "system":
                written.append({"role": message.role, "content": message.text})
        if shown:
            written.append(_beside(shown))
        return written

    def _assistant(self, message: Message, place: int, waiting: list[str]) -> dict[str, Any]:
        data: dict[str, Any] = {"role": "assistant", "content": message.text}
        if message.tool_calls:
            # Results follow their calls directly, so an id that still waits will get none.
            waiting.clear()
            if not message.text and self._dialect.null_content:
                data["content"] = None
            data["tool_calls"] = calls = []
            for number, call in enumerate(message.tool_calls):
                # Nine letters and digits, which is what Mistral takes.
                call_id = call.id or f"call{place % 1000:03}{number % 100:02}"
                if not call.id:
                    waiting.append(call_id)
                calls.append(self._call(call, call_id))
        if message.reasoning and self._dialect.reasoning_field:
            data[self._dialect.reasoning_field] = message.reasoning
        if message.extra and message.extra.get("endpoint") == self._endpoint:
            data.update(message.extra.get("opaque", {}))
        return data

    def _call(self, call: ToolCall, call_id: str) -> dict[str, Any]:
        # A server that reads the conversation again refuses `?` as the name of a function.
        name = "unreadable" if call.name == NAMELESS else call.name
        data: dict[str, Any] = {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": _sendable(call.arguments)},
        }
        if call.extra and call.extra.get("endpoint") == self._endpoint:
            data["extra_content"] = call.extra.get("extra_content")
        return data

    # -- structured replies ----------------------------------------------------------------------------------------

    def _ask_for_schema(self, body: dict[str, Any], messages: list[dict[str, Any]], schema: Mapping[str, Any]) -> None:
        match self._dialect.schema_style:
            case "json_schema":
                wanted: dict[str, Any] = {"name": "reply", "schema": schema}
                # OpenAI refuses `strict` beside any other schema.
                if is_strict(schema):
                    wanted["strict"] = True
                body["response_format"] = {"type": "json_schema", "json_schema": wanted}
            case "structured_outputs":
                body["structured_outputs"] = {"json": schema}
            case "json_object_schema":
                body["response_format"] = {"type": "json_object", "schema": schema}
            case "format":
                body["format"] = schema
            case style:
                if style == "json_object":
                    body["response_format"] = {"type": "json_object"}
                _instruct(messages, f"{_ASK_FOR_JSON}\n{json.dumps(schema, ensure_ascii=False)}")


def _beside(attachments: Sequence[Attachment]) -> dict[str, Any]:
    """What results showed, as a message of the user's."""
    marks = "\n".join(each.mark for each in attachments)
    return {"role": "user", "content": [{"type": "text", "text": marks}, *map(_part, attachments)]}


def _part(attachment: Attachment) -> dict[str, Any]:
    """An attachment as a part of a message."""
    if attachment.kind == "image":
        return {"type": "image_url", "image_url": {"url": attachment.data_url}}
    if attachment.kind == "audio":
        name = attachment.media_type.partition("/")[2].removeprefix("x-")
        return {"type": "input_audio", "input_audio": {"data": attachment.base64, "format": _FORMATS.get(name, name)}}
    return {"type": "file", "file": {"filename": attachment.name, "file_data": attachment.data_url}}


def _instruct(messages: list[dict[str, Any]], text: str) -> None:
    """Add a text to the system message; many servers accept only one, and only at the beginning."""
    if messages and messages[0]["role"] == "system":
        messages[0] = {"role": "system", "content": f"{messages[0]['content']}\n\n{text}"}
    else:
        messages.insert(0, {"role": "system", "content": text})


def is_strict(schema: Any) -> bool:
    """Whether a schema keeps the rules under which OpenAI promises to satisfy it: every object closed and complete."""
    if isinstance(schema, Mapping):
        if "properties" in schema or schema.get("type") == "object":
            closed = schema.get("additionalProperties") is False
            if not closed or set(schema.get("required", ())) != set(schema.get("properties", ())):
                return False
        return all(map(is_strict, schema.values()))
    return all(map(is_strict, schema)) if isinstance(schema, (list, tuple)) else True


def _sendable(arguments: Any) -> str:
    """Arguments as the text of a JSON object: servers read them again, and fail on a conversation with others."""
    if isinstance(arguments, dict):
        return json.dumps(arguments, ensure_ascii=False)
    try:
        if isinstance(json.loads(arguments), dict):
            return str(arguments)
    except (ValueError, RecursionError):
        pass
    return json.dumps({"unreadable": arguments}, ensure_ascii=False)
