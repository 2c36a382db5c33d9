"""Where what members say enters a run: secrets that the process knows are taken out here, before anybody sees them.

A tool may return its own environment, a server may send a key back that it was given. Results, replies, errors and
texts that are still being written pass these functions, before they are cut, checked by guards, recorded or shown.

Invariant: no observation, event or piece of text holds a known secret that can be told from a word; an error holds none
of the others either. While the process knows no secret, nothing is looked through.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from concertino.core.attachment import Attachment
from concertino.core.known_secrets import Finder, HeldText, finder, finder_with_words, hidden_data
from concertino.core.model import Reply, Thought, ToolCall
from concertino.core.observation import ErrorInfo

if TYPE_CHECKING:
    from .model_call import StreamListener


def clean_content(content: Any, text: str) -> tuple[Any, str]:
    """A result and the text that a model reads of it, without secrets.

    Args:
        content: plain JSON data.
        text: its text, empty where it is short.
    """
    found = finder()
    if found is None or content is None or content is True or content is False:
        return content, text
    # Looked through as a whole, which is quicker than value by value.
    whole = text or content
    if not (found.may_be_in(whole) if isinstance(whole, str) else found.may_be_in_data(whole)):
        return content, text
    cleaned = hidden_data(content, found)
    if cleaned is content:
        return content, text
    if not text:
        return cleaned, text
    return cleaned, cleaned if isinstance(cleaned, str) else json.dumps(cleaned, ensure_ascii=False)


def clean_reply(reply: Reply) -> Reply:
    """A model's reply without secrets. Tokens that no longer belong to its text are left out."""
    found = finder()
    if found is None or not _may_hold(reply, found):
        return reply
    changes: dict[str, Any] = {}
    for name in ("text", "reasoning"):
        told = getattr(reply, name)
        if told and (cleaned := found.hidden(told)) != told:
            changes[name] = cleaned
    if reply.tool_calls:
        calls = tuple(_clean_call(call, found) for call in reply.tool_calls)
        if calls != reply.tool_calls:
            changes["tool_calls"] = calls
    if reply.extra and (extra := hidden_data(dict(reply.extra), found)) != reply.extra:
        changes["extra"] = extra
    if changes:
        changes |= {"token_ids": None, "logprobs": None}
    return replace(reply, **changes) if changes else reply


def _may_hold(reply: Reply, found: Finder) -> bool:
    if found.may_be_in(reply.text) or (reply.reasoning and found.may_be_in(reply.reasoning)):
        return True
    return bool(reply.tool_calls or reply.extra)


def _clean_call(call: ToolCall, found: Finder) -> ToolCall:
    data = call.to_json()
    cleaned = hidden_data(data, found)
    return call if cleaned is data else ToolCall(**cleaned)


def clean_error(error: ErrorInfo) -> ErrorInfo:
    """An error without secrets, those that look like words too."""
    found = finder_with_words()
    if found is None:
        return error
    changes: dict[str, Any] = {
        name: cleaned
        for name in ("message", "path", "expected", "got")
        if (cleaned := found.hidden(told := getattr(error, name))) != told
    }
    return replace(error, **changes) if changes else error


def clean_attachments(value: Any) -> Any:
    """A result whose attachments are without secrets: itself one, or a list or dict of some."""
    if finder() is None:
        return value
    if isinstance(value, Attachment):
        return _clean_attachment(value)
    if isinstance(value, (list, tuple)):
        return [_clean_attachment(item) if isinstance(item, Attachment) else item for item in value]
    if isinstance(value, dict):
        return {key: _clean_attachment(item) if isinstance(item, Attachment) else item for key, item in value.items()}
    return value


def _clean_attachment(attachment: Attachment) -> Attachment:
    """An attachment whose text, if it is one, holds no secrets. Images and other bytes are not looked into."""
    found = finder()
    if found is None or not attachment.data or attachment.data[:1] == b"\0":
        return attachment
    try:
        text = attachment.data.decode()
    except UnicodeDecodeError:
        return attachment
    cleaned = found.hidden(text)
    return (
        attachment
        if cleaned == text
        else Attachment.from_json(
            {**attachment.to_json(), "sha256": sha256(data := cleaned.encode()).hexdigest()}, data
        )
    )


class DiscreetListener:
    """Hears a reply while it is written, and passes it on without secrets, those in several pieces too."""

    __slots__ = ("_listener", "_text", "_thought")

    def __init__(self, listener: StreamListener) -> None:
        self._listener = listener
        self._text, self._thought = HeldText(), HeldText()

    def on_attempt(self) -> None:
        """An attempt begins: the text heard so far is void."""
        self._text, self._thought = HeldText(), HeldText()
        self._listener.on_attempt()

    def on_thought(self, piece: str) -> None:
        """More of the reasoning channel."""
        if told := self._thought.feed(piece):
            self._listener.on_thought(Thought(told))

    def on_text(self, piece: str) -> None:
        """More of the text."""
        if told := self._text.feed(piece):
            self._listener.on_text(told)

    def on_end(self) -> None:
        """The text is complete."""
        if rest := self._thought.finish():
            self._listener.on_thought(Thought(rest))
        if rest := self._text.finish():
            self._listener.on_text(rest)
        self._listener.on_end()
