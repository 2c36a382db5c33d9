"""Content: prompts, answers, arguments and results, as the conventions write them. Only asked for where it is wanted.

Invariant: a text is at most `LONGEST` characters long, secrets are hidden in it as in a display, and what was cut is
said; the trace has all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from concertino.core.redaction import DisplayRedactor

LONGEST = 8_000
"""Characters of a text of a span. Receivers refuse whole batches that are too large."""
MOST_MESSAGES = 40
"""Of a request, the last ones."""
Record = Mapping[str, Any]


def run_fields(which: str, text: str) -> dict[str, Any]:
    """The question (`input`) or the answer (`output`) of a run, as a message."""
    role = "user" if which == "input" else "assistant"
    return {which: _json([{"role": role, "parts": [_text(text)]}])}


def message_fields(kind: str, arguments: Any, result: Any) -> dict[str, Any]:
    """What a call was given, and what came back."""
    if kind == "chat":
        return _chat(arguments if isinstance(arguments, Mapping) else {}, result)
    if kind == "guard":
        return {}
    fields = {}
    if arguments is not None:
        fields["arguments"] = _shortened(arguments)
    if result is not None:
        fields["result"] = _shortened(result)
    return fields


def _chat(arguments: Record, reply: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    messages = [each for each in arguments.get("messages", []) if isinstance(each, Mapping)]
    told = [_text(each.get("text", "")) for each in messages if each.get("role") == "system"]
    given = [_message(each) for each in messages[-MOST_MESSAGES:] if each.get("role") != "system"]
    if told:
        fields["instructions"] = _json(told)
    if given:
        fields["input"] = _json(given)
    if isinstance(reply, Mapping):
        written = {**_message({**reply, "role": "assistant"}), "finish_reason": str(reply.get("finish_reason", ""))}
        fields["output"] = _json([written])
    return fields


def _message(message: Record) -> dict[str, Any]:
    """A message of a trace in the parts of the conventions."""
    parts: list[dict[str, Any]] = []
    if message.get("reasoning"):
        parts.append({"type": "reasoning", "content": _shortened(message["reasoning"])})
    if message.get("call_id"):
        answer = {"type": "tool_call_response", "id": message["call_id"]}
        return {"role": "tool", "parts": [{**answer, "response": _shortened(message.get("text", ""))}]}
    if message.get("text"):
        parts.append(_text(message["text"]))
    for call in message.get("tool_calls", ()):
        said = {"id": call.get("id", ""), "name": call.get("name", ""), "arguments": _shortened(call.get("arguments"))}
        parts.append({"type": "tool_call", **said})
    return {"role": str(message.get("role", "user")), "parts": parts}


def _text(text: Any) -> dict[str, Any]:
    return {"type": "text", "content": _shortened(text)}


def _shortened(value: Any) -> str:
    text = value if isinstance(value, str) else _json(value)
    redactor = DisplayRedactor(LONGEST)
    if len(text) <= LONGEST:
        return redactor.text(text)
    # One character more than it looks through, so that it leaves out what may be half a secret at the cut.
    shown = redactor.text(text[: LONGEST + 1]).rstrip("…")
    return f"{shown} [{len(text):,} characters in the trace]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
