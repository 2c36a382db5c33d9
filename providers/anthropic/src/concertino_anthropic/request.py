"""Requests: a `ChatRequest` as the body of the Messages API.

Two things need care. Results of calls stand in one message of the user's, right after the calls, before any other text.
And thoughts go back as they came, with their signatures, but only while all that was sent before them is the same: the
API refuses a thought whose conversation was edited (a compacted history, other tools, another system prompt). So a
reply remembers a digest of what it was asked with, and its thoughts are left out once that no longer matches.

Invariant: the request is read, never changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from concertino import Attachment, ChatRequest, FailureClass, Message, ProviderError, ToolCall
from concertino.text import NAMELESS, ToolQuoting

from .options import LEAST_BUDGET, AnthropicSettings
from .schema import sayable

THOUGHTS = ("thinking", "redacted_thinking")
"""Types of blocks that go back unchanged."""
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_TEXTS = ("application/json", "application/xml", "application/yaml", "application/toml")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_NO_TEXT = "(no text)"
_ASK_FOR_JSON = "Answer with one JSON value that satisfies this JSON schema, and with nothing else:"

Block = dict[str, Any]


class Written(NamedTuple):
    """A request as it is sent.

    Attributes:
        body: of the request.
        prefix: digest of all that a thought of the reply will depend on.
    """

    body: dict[str, Any]
    prefix: str


class RequestWriter:
    """Writes requests to one model."""

    def __init__(self, settings: AnthropicSettings) -> None:
        self._settings = settings
        self._quote_tools = ToolQuoting()
        lifetime = {"ttl": settings.cache} if settings.cache == "1h" else {}
        self._mark = {"cache_control": {"type": "ephemeral", **lifetime}} if settings.cache else {}

    def write(self, request: ChatRequest) -> Written:
        """The body of a request.

        Raises:
            ProviderError: an attachment is of a type that the API does not take.
        """
        settings = self._settings
        request = request.quoted(self._quote_tools)
        system, messages = _split(request.messages)
        tools, choice = _tools(request)
        output: dict[str, Any] = {"effort": settings.effort} if settings.effort else {}
        if request.schema is not None:
            schema = sayable(request.schema) if settings.schema_style == "json_schema" else None
            if schema is None:
                asked = f"{_ASK_FOR_JSON}\n{json.dumps(dict(request.schema), ensure_ascii=False)}"
                system = f"{system}\n\n{asked}" if system else asked
            else:
                output["format"] = {"type": "json_schema", "schema": schema}
        written, prefix = self._conversation(messages, system, tools)
        further = {name: value for name, value in settings.extra_body.items() if request.tools or name != "tool_choice"}
        body: dict[str, Any] = {
            **further,
            "model": settings.model,
            "max_tokens": request.sampling.max_tokens or settings.max_output,
            "messages": written,
        }
        if settings.stream:
            body["stream"] = True
        if system:
            body["system"] = [{"type": "text", "text": system, **self._mark}]
        if tools:
            body |= {"tools": tools, **choice}
        if output:
            body["output_config"] = output
        # The API refuses a text of blanks, which could hardly stop anything.
        if stops := [stop for stop in request.sampling.stop if stop.strip()]:
            body["stop_sequences"] = stops
        if thinking := self._thinking(body["max_tokens"], written):
            body["thinking"] = thinking
        if self._mark and (request.tools or len(written) > 1):
            _mark_end(written[-1], self._mark)
        return Written(body, prefix)

    def _thinking(self, max_tokens: int, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
        chosen, display = self._settings.thinking, {"display": self._settings.display}
        if not chosen:
            # To ask a model that thinks anyway changes nothing but what is told of it.
            return {"type": "adaptive", **display} if self._settings.preset.thinking == "on" else {}
        if isinstance(chosen, str):
            return {"type": chosen, **display} if chosen == "adaptive" else {"type": chosen}
        budget = min(chosen, max_tokens - 1)
        # A turn that began without thoughts cannot go on with a budget for them.
        if budget < LEAST_BUDGET or _calls_without_thoughts(messages):
            return {}
        return {"type": "enabled", "budget_tokens": budget, **display}

    # -- messages ------------------------------------------------------------------------------------------------------

    def _conversation(
        self, messages: Sequence[Message], system: str, tools: Sequence[Any]
    ) -> tuple[list[dict[str, Any]], str]:
        """The messages, and the digest of the whole."""
        digest = hashlib.sha256(_canonical([system, tools]))
        written: list[dict[str, Any]] = []
        waiting: list[str] = []  # ids, made up here, of calls that came without one
        pending = 0  # messages that are not in the digest yet
        for message in messages:
            if message.role == "assistant":
                _begun(written)
                for each in written[pending:]:
                    digest.update(_canonical(each))
                content = self._assistant(message, digest.hexdigest()[:16], len(written), waiting)
                pending = len(written)
                if content:
                    written.append({"role": "assistant", "content": content})
            elif message.role == "tool":
                _user(written).append(_result(message, waiting))
            else:
                # After results of calls, further text belongs into the same message, behind them.
                blocks = _user(written) if written and _holds_results(written[-1]) else _new_user(written)
                blocks += _content(message.text, message.attachments)
        _begun(written)
        for each in written[pending:]:
            digest.update(_canonical(each))
        return written, digest.hexdigest()[:16]

    def _assistant(self, message: Message, prefix: str, place: int, waiting: list[str]) -> list[Block]:
        # Results follow their calls directly, so an id that still waits will get none.
        waiting.clear()
        calls = []
        for number, call in enumerate(message.tool_calls):
            call_id = call.id or f"call{place % 1000:03}{number % 100:02}"
            if not call.id:
                waiting.append(call_id)
            calls.append(_call(call, call_id))
        extra = message.extra
        plain = [*_text(message.text), *calls]
        if extra.get("endpoint") != self._settings.endpoint or extra.get("prefix") != prefix:
            return plain
        return _rebuilt(extra.get("blocks", ()), message.text, calls) or plain


def _split(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """The system prompt, and the messages: the API has one place for it; later ones are told as the user's."""
    system: list[str] = []
    for place, message in enumerate(messages):
        if message.role != "system":
            return "\n\n".join(system), list(messages[place:])
        if message.text.strip():
            system.append(message.text)
    return "\n\n".join(system), []


def _tools(request: ChatRequest) -> tuple[list[Block], Block]:
    """The tools, and whether they may be called."""
    if request.tools:
        return [_tool(each["function"]) for each in request.tools], {}
    # A conversation with calls needs their tools, also where no more may be called.
    names = dict.fromkeys(_name(call) for message in request.messages for call in message.tool_calls)
    stubs = [{"name": name, "description": "Not available.", "input_schema": {"type": "object"}} for name in names]
    return stubs, {"tool_choice": {"type": "none"}} if stubs else {}


def _tool(function: Mapping[str, Any]) -> Block:
    schema = function.get("parameters") or {"type": "object"}
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def _name(call: ToolCall) -> str:
    return "unreadable" if call.name == NAMELESS else _UNFIT.sub("_", call.name)[:64]


def _call(call: ToolCall, call_id: str) -> Block:
    arguments: Any = call.arguments
    if not isinstance(arguments, dict):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            arguments = {"unreadable": call.arguments}
    return {"type": "tool_use", "id": _UNFIT.sub("_", call_id), "name": _name(call), "input": arguments}


def _result(message: Message, waiting: list[str]) -> Block:
    # Results without an id belong to the calls without one, in order.
    call_id = message.call_id or (waiting.pop(0) if waiting else "call")
    content = [*_text(message.text), *map(_attached, message.attachments)]
    result: Block = {"type": "tool_result", "tool_use_id": _UNFIT.sub("_", call_id)}
    return {**result, "content": content} if content else result


def _content(text: str, attachments: Sequence[Attachment]) -> list[Block]:
    # The vendor advises to put images and documents before the text that speaks of them.
    return [*map(_attached, attachments), *_text(text)] or [{"type": "text", "text": _NO_TEXT}]


def _text(text: str) -> list[Block]:
    """A text as blocks; none for blanks, which the API refuses."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _attached(attachment: Attachment) -> Block:
    """An image or a document.

    Raises:
        ProviderError: the API takes no such thing.
    """
    kind = attachment.media_type
    if attachment.kind == "image" and (attachment.url or kind in _IMAGES):
        return {"type": "image", "source": _source(attachment)}
    if attachment.kind == "file" and (attachment.url or kind == "application/pdf"):
        return {"type": "document", "title": attachment.name, "source": _source(attachment)}
    if attachment.kind == "file" and (not kind or kind.startswith("text/") or kind in _TEXTS):
        try:
            text = attachment.data.decode()
        except UnicodeDecodeError:
            raise _refused(attachment, "is no UTF-8 text") from None
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return {"type": "document", "title": attachment.name, "source": source}
    raise _refused(attachment, f"is of type {kind or '(unknown)'}")


def _source(attachment: Attachment) -> Block:
    if attachment.url:
        return {"type": "url", "url": attachment.url}
    return {"type": "base64", "media_type": attachment.media_type, "data": attachment.base64}


def _refused(attachment: Attachment, why: str) -> ProviderError:
    return ProviderError(
        f"the {attachment.kind} {attachment.name!r} {why}; the API takes images as JPEG, PNG, GIF and WebP, and files "
        "as PDF or text",
        failure=FailureClass.CALLER,
    )


def _user(written: list[dict[str, Any]]) -> list[Block]:
    """The content of the last message of the user's; of a new one after the assistant's."""
    if written and written[-1]["role"] == "user":
        content: list[Block] = written[-1]["content"]
        return content
    return _new_user(written)


def _new_user(written: list[dict[str, Any]]) -> list[Block]:
    content: list[Block] = []
    written.append({"role": "user", "content": content})
    return content


def _begun(written: list[dict[str, Any]]) -> None:
    """A conversation begins with the user's message."""
    if not written:
        _new_user(written).append({"type": "text", "text": _NO_TEXT})


def _holds_results(message: Mapping[str, Any]) -> bool:
    return bool(message["role"] == "user" and message["content"][0]["type"] == "tool_result")


def _calls_without_thoughts(messages: Sequence[Mapping[str, Any]]) -> bool:
    if len(messages) < 2 or not _holds_results(messages[-1]):
        return False
    return messages[-2]["content"][0]["type"] not in THOUGHTS


def _mark_end(message: dict[str, Any], mark: Mapping[str, Any]) -> None:
    message["content"][-1] = {**message["content"][-1], **mark}


# -- thoughts ----------------------------------------------------------------------------------------------------------


def outline(blocks: Sequence[Mapping[str, Any]]) -> list[Block]:
    """The order of a reply's blocks, with its thoughts whole; texts and calls stand in the reply itself.

    Empty for a reply without thoughts: its order is text, then calls.
    """
    if not any(block["type"] in THOUGHTS for block in blocks):
        return []
    return [_outlined(block) for block in blocks]


def _outlined(block: Mapping[str, Any]) -> Block:
    if block["type"] == "text":
        return {"type": "text", "length": len(block["text"])}
    return dict(block) if block["type"] in THOUGHTS else {"type": block["type"]}


def _rebuilt(outlined: Sequence[Mapping[str, Any]], text: str, calls: list[Block]) -> list[Block] | None:
    """The blocks of a reply as they came; None if the message is no longer that reply."""
    if sum(each.get("length", 0) for each in outlined) != len(text):
        return None
    blocks: list[Block] = []
    left, rest = list(calls), text
    for each in outlined:
        if each["type"] == "text":
            blocks += _text(rest[: each["length"]])
            rest = rest[each["length"] :]
        elif each["type"] == "tool_use":
            if not left:
                return None
            blocks.append(left.pop(0))
        else:
            blocks.append(dict(each))
    return None if left else blocks


def _canonical(value: Any) -> bytes:
    """What the API compares: without thoughts and cache marks, which may change."""
    if isinstance(value, dict) and value.get("role") == "assistant":
        value = {**value, "content": [block for block in value["content"] if block["type"] not in THOUGHTS]}
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
