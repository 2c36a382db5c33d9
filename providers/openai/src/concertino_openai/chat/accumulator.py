"""`ReplyAccumulator`: chunks of a stream, or one plain answer, become the same `Reply`.

A plain answer is a stream of one chunk whose delta is called `message`; there is no other difference. Each chunk is
read once. What a server may leave out, send twice, name differently or send as another type is handled
here and nowhere else.

Invariant: the reply depends on what was said, not on how it was cut into chunks; and the pieces that `feed` and `reply`
give add up to the text of the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from concertino import ChatRequest, Reply, ToolCall, Usage
from concertino.text import write_tool_call

from concertino_openai.dialects import ServerDialect

from .channels import Channels
from .tool_calls import CallFragments
from .tool_text import read_calls
from .usage import estimate_usage, read_usage

_JOINED = ("text", "summary", "data")
"""Fields of thoughts whose fragments are one text."""


class ReplyAccumulator:
    """Accumulates one reply.

    Args:
        dialect: of the server.
        tools: tools were offered, so the text may hold calls.
        endpoint: what the reply's opaque data belongs to.
        stops: texts that were to end the reply.
    """

    def __init__(self, dialect: ServerDialect, tools: bool, endpoint: str, stops: Sequence[str] = ()) -> None:
        self._channels = Channels(dialect.think, tools, [*filter(None, stops)] if dialect.keeps_stop else ())
        self._endpoint = endpoint
        self._calls: CallFragments | None = None
        self._broken: ToolCall | None = None
        self._usage: Mapping[str, Any] | None = None
        self._origin: dict[str, Any] = {}
        self._opaque: dict[str, Any] = {}
        self._details: list[Any] = []
        self._logprobs: list[float] | None = None
        self._token_ids: list[int] | None = None
        self._prompt_ids: Sequence[int] | None = None
        self._refused = False
        self._thoughts_told = 0
        self.begun = False
        self.finish_reason = ""

    def feed(self, chunk: Mapping[str, Any]) -> str:
        """Take a chunk, or a whole plain answer; returns the text that can be shown now."""
        if not self._origin:
            self._origin = {name: value for name in ("id", "model") if (value := chunk.get(name))}
        if usage := chunk.get("usage"):
            # A server that reports usage in every chunk sends running totals, so the last report counts.
            self._usage = usage
        if ids := chunk.get("prompt_token_ids"):
            self._prompt_ids = ids
        # The chunk that holds the usage has no choices.
        for choice in chunk.get("choices") or ():
            if not choice.get("index"):  # only one choice was asked for, and some servers omit its number
                return self._choice(choice)
        return ""

    def _choice(self, choice: Mapping[str, Any]) -> str:
        if reason := choice.get("finish_reason"):
            self.finish_reason = reason
        if ids := choice.get("token_ids"):
            self._token_ids = _extended(self._token_ids, ids)
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, dict) and (tokens := logprobs.get("content")):
            self._logprobs = _extended(self._logprobs, [token.get("logprob") for token in tokens])
        delta = choice.get("delta") or choice.get("message")
        return self._delta(delta) if delta else ""

    def _delta(self, delta: Mapping[str, Any]) -> str:
        # Servers use either name, and OpenRouter both; its details also hold signatures that it wants back.
        thought = delta.get("reasoning") or delta.get("reasoning_content")
        if details := delta.get("reasoning_details"):
            self._details += details
            thought = thought or "".join(detail.get("text") or detail.get("summary") or "" for detail in details)
        if thought:
            self.begun = True
            self._channels.thought(thought if isinstance(thought, str) else _joined(thought))
        if calls := delta.get("tool_calls"):
            self.begun = True
            if self._calls is None:
                self._calls = CallFragments(self._endpoint)
            self._calls.feed(calls)
        if extra := delta.get("extra_content"):
            self._opaque["extra_content"] = extra
        content = delta.get("content")
        if not content:
            # OpenAI sends a refusal instead of content; it is all the text that there is.
            content = delta.get("refusal")
            if not content:
                return ""
            self._refused = True
        self.begun = True
        return self._channels.feed(content if isinstance(content, str) else _joined(content))

    def new_thoughts(self) -> str:
        """The thoughts that came since this was asked last."""
        thoughts = self._channels.thoughts
        if self._thoughts_told == len(thoughts):
            return ""
        new, self._thoughts_told = "".join(thoughts[self._thoughts_told :]), len(thoughts)
        return new

    def add_unreadable_call(self, call: ToolCall) -> None:
        """The server could not read the model's call, and this is what is known of it."""
        self._broken = call
        self.finish_reason = self.finish_reason or "tool_calls"

    def reply(self, request: ChatRequest, count: Callable[[str], int]) -> tuple[str, Reply]:
        """The last piece of text, and the whole reply.

        Args:
            request: what was asked, to estimate what a server does not report.
            count: estimates the tokens of a text.
        """
        channels = self._channels
        calls, rest = read_calls("".join(channels.block)) if channels.block else ([], "")
        # Some servers send a parsed call and its text; the parsed one counts.
        if self._calls is not None:
            calls = self._calls.calls(cut_off=self.finish_reason == "length")
        if self._broken is not None:
            calls = [*calls, self._broken]
        last = channels.finish(called=bool(calls))
        # Before `rest` is added to the shown text: an estimate counts `block` already, and would count it twice.
        usage = self.usage(request, count)
        if rest:
            channels.shown.append(rest)
            last += rest
        text, thoughts = "".join(channels.shown), "".join(channels.thoughts).strip()
        extra: dict[str, Any] = dict(self._origin)
        # Thoughts that the length limit cut off are thoughts, not an answer.
        if not text and thoughts and not calls and self.finish_reason != "length":
            # A server's parser that waits for `</think>` takes a reply without thoughts for thoughts.
            text, last, thoughts = thoughts, thoughts, ""
            extra["text_from"] = "reasoning"
        if self._refused:
            extra["refusal"] = True
        ids, logprobs = self._tokens(extra)
        return last, Reply(
            text,
            tuple(calls),
            usage,
            self.finish_reason or "stop",
            thoughts,
            ids,
            logprobs,
            tuple(self._prompt_ids) if self._prompt_ids is not None else None,
            extra=self._with_opaque(extra),
        )

    def usage(self, request: ChatRequest, count: Callable[[str], int]) -> Usage:
        """The usage so far: as the server reported it, else estimated from all that was written."""
        if isinstance(self._usage, dict):
            return read_usage(self._usage)
        channels = self._channels
        made = [*(self._calls.calls() if self._calls is not None else ()), *filter(None, [self._broken])]
        calls = [write_tool_call(call.name, call.arguments, gap="") for call in made]
        return estimate_usage(request, "".join([*channels.thoughts, *channels.shown, *channels.block, *calls]), count)

    def _tokens(self, extra: dict[str, Any]) -> tuple[tuple[int, ...] | None, tuple[float, ...] | None]:
        """Token ids and their log-probabilities; unequal numbers of them are useless, and dropped."""
        ids, logprobs = self._token_ids, self._logprobs
        if logprobs is not None and None in logprobs:
            logprobs = None
        if ids is not None and logprobs is not None and len(ids) != len(logprobs):
            extra["uneven_tokens"] = [len(ids), len(logprobs)]
            return None, None
        return tuple(ids) if ids is not None else None, tuple(logprobs) if logprobs is not None else None

    def _with_opaque(self, extra: dict[str, Any]) -> dict[str, Any]:
        """With the opaque data that the server wants back, and the endpoint that it belongs to."""
        if self._details:
            self._opaque["reasoning_details"] = _merged(self._details)
        if self._opaque:
            extra["endpoint"] = self._endpoint
            extra["opaque"] = self._opaque
        return extra


def _extended(known: list[Any] | None, more: list[Any]) -> list[Any]:
    if known is None:
        return list(more)
    known.extend(more)
    return known


def _joined(parts: Any) -> str:
    """The text of a content that comes as a list of parts."""
    if isinstance(parts, list):
        return "".join(map(_joined, parts))
    return str(parts.get("text") or "") if isinstance(parts, dict) else str(parts)


def _merged(details: list[Any]) -> list[Any]:
    """Join the fragments of thoughts: those of one index and type, in a row, are one."""
    whole: list[Any] = []
    joined: dict[str, list[str]] = {}  # the texts of the last one, in parts

    def finish() -> None:
        for key, parts in joined.items():
            whole[-1][key] = "".join(parts)
        joined.clear()

    for detail in details:
        last = whole[-1] if whole else None
        if last is not None and _same(last, detail):
            for key, value in detail.items():
                if key in _JOINED and isinstance(value, str):
                    joined.setdefault(key, [last.get(key) or ""]).append(value)
                elif value is not None:
                    joined.pop(key, None)
                    last[key] = value
                else:
                    last.setdefault(key)
        else:
            finish()
            whole.append(dict(detail) if isinstance(detail, dict) else detail)
    finish()
    return whole


def _same(one: Any, other: Any) -> bool:
    if not (isinstance(one, dict) and isinstance(other, dict)) or other.get("index") is None:
        return False
    return bool(one.get("index") == other.get("index") and one.get("type") == other.get("type"))
