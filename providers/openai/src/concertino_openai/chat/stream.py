"""Decoding an answer, streamed or whole, into a `ReplyAccumulator`.

Invariant: a stream is complete only after a `finish_reason`. A connection that closes without one has lost the rest of
the reply, and a reply that broke off is an error, never a short reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from concertino import ChatRequest, FailureClass, ProviderError, Reply
from concertino.text import QUICK_VALUES, TooManyValues, read_stranger_json

from concertino_openai.failures import from_error, shorten
from concertino_openai.keys import redact
from concertino_openai.options import OpenAISettings

from .accumulator import ReplyAccumulator
from .sse import EventParser, EventTooLarge, MalformedEvent
from .tool_calls import TooManyCalls
from .tool_text import call_in_error

_WRONG_SHAPE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading an answer of an unexpected shape raises."""
_ERROR_EVENT = '{"error": "'


class StreamDecoder:
    """Decodes one stream."""

    def __init__(self, reply: ReplyAccumulator, settings: OpenAISettings, tools: bool) -> None:
        self._reply = reply
        self._settings = settings
        self._call_errors = tools and settings.dialect.call_errors
        self._parser = EventParser(settings.max_event_bytes)
        self._bytes_left = settings.max_reply_bytes
        self._silent = True  # no event so far
        self.done = False

    @property
    def complete(self) -> bool:
        """Whether the whole reply has arrived."""
        return bool(self._reply.finish_reason)

    @property
    def size(self) -> int:
        """Bytes of the reply so far."""
        return self._settings.max_reply_bytes - self._bytes_left

    @property
    def held(self) -> int:
        """Bytes that wait for the end of their event."""
        return self._parser.held

    def feed(self, data: bytes) -> str:
        """Take the next bytes; returns the text that can be shown now.

        Raises:
            ProviderError: the stream holds an error, or is unreadable.
        """
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            raise self._too_large(f"a reply of more than {self._settings.max_reply_bytes:,} bytes", "max_reply_bytes")
        try:
            events = self._parser.feed(data)
        except EventTooLarge as error:
            raise self._too_large(str(error), "max_event_bytes") from None
        return self._event(events[0]) if len(events) == 1 else "".join(map(self._event, events))

    def finish(self) -> str:
        """Take the end of the stream; returns the text that can be shown now.

        Raises:
            ProviderError: it ended too early, or with an error.
        """
        text = ""
        try:
            for event in self._parser.finish():
                if event.rstrip().endswith(("}", "]")):  # any other last event was torn off
                    text += self._event(event)
        except EventTooLarge as error:
            raise self._too_large(str(error), "max_event_bytes") from None
        if self.complete:
            return text
        where = self._settings.base_url
        # A connection that is closed properly raises nothing, however much of the reply is missing.
        if self._reply.begun:
            raise ProviderError(
                f"{where} ended the stream without a finish_reason: the rest of the reply is lost",
                failure=FailureClass.CUT_OFF,
            )
        if self._settings.dialect.mute_errors and self._silent:
            raise ProviderError(
                f"{where} refused the request without a reason, as it does when the context is too long; with "
                "stream = false it gives one",
                failure=FailureClass.CALLER,
            )
        raise ProviderError(f"{where} ended the stream without an answer", failure=FailureClass.MAYBE_EXECUTED)

    def _event(self, event: str) -> str:
        if self.done or not event:
            return ""
        self._silent = False
        # transformers serve never sends it, so nothing else depends on it.
        if event == "[DONE]":
            self.done = True
            return ""
        try:
            # A short one cannot hold too many values, and counting them would cost each token something.
            chunk = json.loads(event) if len(event) <= QUICK_VALUES else read_stranger_json(event)
        except TooManyValues as many:
            raise _too_many(many, self._settings) from None
        except (ValueError, RecursionError):
            return self._invalid_json(event)
        # A server that has already answered 200 can report an error only as an event.
        if type(chunk) is not dict or chunk.get("error"):
            error = chunk.get("error") if isinstance(chunk, dict) else chunk
            return self._error(error)
        try:
            return self._reply.feed(chunk)
        except TooManyCalls as many:
            raise _too_many(many, self._settings) from None
        except _WRONG_SHAPE as error:
            raise _unexpected_shape(event, error, self._settings, begun=True) from None

    def _error(self, error: Any) -> str:
        """An error event. After the finish it changes nothing; one about the model's call becomes that call."""
        if self.complete:
            return ""
        call = call_in_error(error) if self._call_errors and isinstance(error, str) else None
        if call is None:
            raise from_error(error, self._settings.base_url, begun=self._reply.begun)
        self._reply.add_unreadable_call(call)
        return ""

    def _invalid_json(self, event: str) -> str:
        """An event with invalid JSON: a server printed an error into it without escaping, or it is garbage."""
        raw = event.raw if isinstance(event, MalformedEvent) else event
        self.done = raw.strip() == "[DONE]"
        if self.done or self.complete:
            return ""
        # transformers serve prints an exception between these quotes without escaping it.
        if raw.startswith(_ERROR_EVENT):
            return self._error(raw.removeprefix(_ERROR_EVENT).removesuffix('"}'))
        failure = FailureClass.CUT_OFF if self._reply.begun else FailureClass.MAYBE_EXECUTED
        text = redact(f"{self._settings.base_url} sent an event with invalid JSON: {shorten(raw)}")
        raise ProviderError(text, failure=failure)

    def _too_large(self, what: str, option: str) -> ProviderError:
        text = f"{self._settings.base_url} sent {what}; if that is right, raise {option}"
        return ProviderError(text, failure=FailureClass.CUT_OFF)


def read_plain(body: bytes, reply: ReplyAccumulator, settings: OpenAISettings) -> str:
    """Read a whole answer; returns its text.

    Raises:
        ProviderError: it is an error, or unreadable.
    """
    where = settings.base_url
    if not body.strip():
        raise ProviderError(f"{where} sent an empty answer", failure=FailureClass.MAYBE_EXECUTED)
    try:
        answer = read_stranger_json(body)
    except TooManyValues as many:
        raise _too_many(many, settings) from None
    except (ValueError, RecursionError):
        text = redact(f"{where} answered with invalid JSON: {shorten(body.decode('utf-8', 'replace'))}")
        raise ProviderError(text, failure=FailureClass.CUT_OFF) from None
    if not isinstance(answer, dict) or answer.get("error"):
        # Gemini wraps its error object in a list.
        error = answer[0] if isinstance(answer, list) and answer else answer
        raise from_error(error.get("error", error) if isinstance(error, dict) else error, where, begun=False)
    if not answer.get("choices"):
        # JSON without `choices` comes from another API, and would come again; an empty list may be filled next time.
        failure = FailureClass.MAYBE_EXECUTED if "choices" in answer else FailureClass.CALLER
        text = redact(f"{where} answered with JSON that is not a chat completion: {shorten(json.dumps(answer))}")
        raise ProviderError(text, failure=failure)
    try:
        text = reply.feed(answer)
    except TooManyCalls as many:
        raise _too_many(many, settings) from None
    except _WRONG_SHAPE as error:
        raise _unexpected_shape(json.dumps(answer), error, settings, begun=False) from None
    # A plain answer is known to be whole because its JSON is; it needs no finish_reason to prove it.
    reply.finish_reason = reply.finish_reason or "stop"
    return text


def reply_of(
    reply: ReplyAccumulator, request: ChatRequest, count: Callable[[str], int], settings: OpenAISettings
) -> tuple[str, Reply]:
    """The last piece of text, and the whole reply.

    Raises:
        ProviderError: the answer has an unexpected shape.
    """
    try:
        return reply.reply(request, count)
    except _WRONG_SHAPE as error:
        raise _unexpected_shape("", error, settings, begun=True) from None


def _too_many(error: Exception, settings: OpenAISettings) -> ProviderError:
    # Not retried: the reply was paid for, and would be as large the next time.
    return ProviderError(f"{settings.base_url} sent a reply with {error}", failure=FailureClass.CUT_OFF)


def _unexpected_shape(shown: str, error: Exception, settings: OpenAISettings, *, begun: bool) -> ProviderError:
    text = f"{settings.base_url} answered in an unexpected form ({type(error).__name__}: {error}): {shorten(shown)}"
    return ProviderError(redact(text), failure=FailureClass.CUT_OFF if begun else FailureClass.CALLER)
