"""Reading an answer, as a stream or whole, into a `Fold`, without any I/O.

Invariant: a stream is complete only if a `finish_reason` was seen. A connection that closes nicely without one has lost
the rest of the reply, and a reply that broke off is an error and never a short reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from concertino import ChatRequest, FailureClass, ProviderError, Reply

from ._failures import from_error, shorten
from ._fold import Fold
from ._keys import redact
from ._options import Settings
from ._sse import EventParser, EventTooLarge, TornEvent
from ._tool_text import call_in_error

_ODD = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What looking at an answer of another shape than expected raises."""
_ERROR_EVENT = '{"error": "'


class StreamReading:
    """Reads one stream.

    Args:
        fold: takes the chunks.
        settings: of the model.
        tools: tools were offered.
    """

    __slots__ = ("_call_errors", "_fold", "_left", "_mute", "_parser", "_settings", "done")

    def __init__(self, fold: Fold, settings: Settings, tools: bool) -> None:
        self._fold = fold
        self._settings = settings
        self._call_errors = tools and settings.dialect.call_errors
        self._parser = EventParser(settings.max_event_bytes)
        self._left = settings.max_reply_bytes
        self._mute = True
        self.done = False

    @property
    def complete(self) -> bool:
        """Whether the whole reply has been said."""
        return bool(self._fold.finish_reason)

    def feed(self, data: bytes) -> str:
        """Take the next bytes; give the text that can be shown now.

        Raises:
            ProviderError: the stream holds an error, or cannot be read.
        """
        self._left -= len(data)
        if self._left < 0:
            raise self._too_large(f"a reply of more than {self._settings.max_reply_bytes:,} bytes", "max_reply_bytes")
        try:
            events = self._parser.feed(data)
        except EventTooLarge as error:
            raise self._too_large(str(error), "max_event_bytes") from None
        if len(events) == 1:
            return self._event(events[0])
        return "".join(map(self._event, events))

    def finish(self) -> str:
        """The stream has ended; give the text that can be shown now.

        Raises:
            ProviderError: it ended too early, or with an error.
        """
        text = ""
        try:
            for event in self._parser.finish():
                if event.rstrip().endswith(("}", "]")):  # else it was torn off
                    text += self._event(event)
        except EventTooLarge as error:
            raise self._too_large(str(error), "max_event_bytes") from None
        if self.complete:
            return text
        where = self._settings.base_url
        if self._fold.begun:
            raise ProviderError(
                f"{where} ended the stream without a finish_reason: the rest of the reply is lost",
                failure=FailureClass.CUT_OFF,
            )
        if self._settings.dialect.mute_errors and self._mute:
            raise ProviderError(
                f"{where} refused the request without a word, as it does when the context is too long; with "
                "stream = false it says why",
                failure=FailureClass.CALLER,
            )
        raise ProviderError(f"{where} ended the stream without an answer", failure=FailureClass.MAYBE_EXECUTED)

    def _event(self, event: str) -> str:
        if self.done or not event:
            return ""
        self._mute = False
        if event == "[DONE]":
            self.done = True
            return ""
        try:
            chunk = json.loads(event)
        except (ValueError, RecursionError):
            return self._unreadable(event)
        if type(chunk) is not dict or chunk.get("error"):
            return self._failure(chunk)
        try:
            return self._fold.feed(chunk)
        except _ODD as error:
            raise odd_answer(event, error, self._settings, begun=True) from None

    def _failure(self, chunk: Any) -> str:
        """An error; what comes after the finish changes nothing."""
        error = chunk.get("error") if isinstance(chunk, dict) else chunk
        if self.complete or (isinstance(error, str) and self._broken_call(error)):
            return ""
        raise from_error(error, self._settings.base_url, begun=self._fold.begun)

    def _unreadable(self, event: str) -> str:
        """An event that is no JSON: an error that was printed into it, or rubbish."""
        whole = event.whole if isinstance(event, TornEvent) else event
        self.done = whole.strip() == "[DONE]"
        if self.done or self.complete:
            return ""
        if whole.startswith(_ERROR_EVENT):
            text = whole.removeprefix(_ERROR_EVENT).removesuffix('"}')
            if self._broken_call(text):
                return ""
            raise from_error(text, self._settings.base_url, begun=self._fold.begun)
        failure = FailureClass.CUT_OFF if self._fold.begun else FailureClass.MAYBE_EXECUTED
        text = redact(f"{self._settings.base_url} sent an event that is no JSON: {shorten(whole)}")
        raise ProviderError(text, failure=failure)

    def _broken_call(self, text: str) -> bool:
        """Whether an error says that the model's call could not be read; then it is the reply."""
        call = call_in_error(text) if self._call_errors else None
        if call is None:
            return False
        self._fold.broken_call(call)
        return True

    def _too_large(self, what: str, option: str) -> ProviderError:
        return ProviderError(
            f"{self._settings.base_url} sent {what}; if that is right, raise {option}", failure=FailureClass.CUT_OFF
        )


def read_plain(body: bytes, fold: Fold, settings: Settings) -> str:
    """Read a whole answer; give its text.

    Raises:
        ProviderError: it is an error, or cannot be read.
    """
    where = settings.base_url
    if not body.strip():
        raise ProviderError(f"{where} answered with nothing", failure=FailureClass.MAYBE_EXECUTED)
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        text = redact(f"{where} answered with what is no JSON: {shorten(body.decode('utf-8', 'replace'))}")
        raise ProviderError(text, failure=FailureClass.CUT_OFF) from None
    if not isinstance(answer, dict) or answer.get("error"):
        error = answer[0] if isinstance(answer, list) and answer else answer
        raise from_error(error.get("error", error) if isinstance(error, dict) else error, where, begun=False)
    if not answer.get("choices"):
        failure = FailureClass.MAYBE_EXECUTED if "choices" in answer else FailureClass.CALLER
        text = redact(f"{where} answered with JSON that is no chat completion: {shorten(json.dumps(answer))}")
        raise ProviderError(text, failure=failure)
    try:
        text = fold.feed(answer)
    except _ODD as error:
        raise odd_answer(json.dumps(answer), error, settings, begun=False) from None
    fold.finish_reason = fold.finish_reason or "stop"
    return text


def conclude(fold: Fold, request: ChatRequest, count: Callable[[str], int], settings: Settings) -> tuple[str, Reply]:
    """The last piece of text, and the whole reply.

    Raises:
        ProviderError: what was said is of another form than expected.
    """
    try:
        return fold.reply(request, count)
    except _ODD as error:
        raise odd_answer("", error, settings, begun=True) from None


def odd_answer(shown: str, error: Exception, settings: Settings, *, begun: bool) -> ProviderError:
    """An answer of another shape than OpenAI's."""
    text = f"{settings.base_url} answered in another form than expected ({type(error).__name__}: {error}): "
    failure = FailureClass.CUT_OFF if begun else FailureClass.CALLER
    return ProviderError(redact(text + shorten(shown)), failure=failure)
