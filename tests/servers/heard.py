"""What a client hears of an answer: a plain body and a stream folded to one value, by the letter of OpenAI's API.

Only what servers agree on is read, and nothing is mended: the point is to see what a server really sends.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from record import Recording


class Heard(NamedTuple):
    """An answer.

    Attributes:
        text: all content; "" where there is none.
        calls: name and argument text of each tool call.
        finish: why it ended; "" where the server did not say.
        reasoning: of either name that servers give it.
        error: what came instead of, or after, the answer.
    """

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = ""
    reasoning: str = ""
    error: str = ""


def heard(recording: Recording) -> Heard:
    """The answer in a recording."""
    body = recording.body.decode()
    if recording.status != 200:
        return Heard(error=f"{recording.status} {body}")
    if recording.content_type.startswith("text/event-stream"):
        return _folded(body)
    choice = json.loads(body)["choices"][0]
    return _said([choice["message"]], [choice["finish_reason"]], "")


def _folded(body: str) -> Heard:
    deltas, finishes, error = [], [], ""
    for event in body.split("\n\n"):
        data = event.removeprefix("data: ")
        if not data or data == "[DONE]":
            continue
        try:
            choices = json.loads(data)["choices"]
        except (ValueError, KeyError):
            error = data
            continue
        for choice in choices:
            deltas.append(choice["delta"])
            finishes.append(choice.get("finish_reason"))
    return _said(deltas, finishes, error)


def _said(messages: list[dict[str, Any]], finishes: list[str | None], error: str) -> Heard:
    calls: dict[int, tuple[str, str]] = {}
    for message in messages:
        for place, call in enumerate(message.get("tool_calls") or []):
            name, arguments = calls.get(call.get("index", place), ("", ""))
            function = call["function"]
            called = (name + (function.get("name") or ""), arguments + (function.get("arguments") or ""))
            calls[call.get("index", place)] = called
    return Heard(
        text="".join(message.get("content") or "" for message in messages),
        calls=tuple(call for _, call in sorted(calls.items())),
        finish=next((finish for finish in reversed(finishes) if finish), ""),
        reasoning="".join(message.get("reasoning") or message.get("reasoning_content") or "" for message in messages),
        error=error,
    )
