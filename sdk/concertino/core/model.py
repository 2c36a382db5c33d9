"""Chat models: what goes in, what comes out, and the two-method class a provider writes.

A model is stateless: it takes messages and returns a `Reply`. Everything around it (deadline, retries, prices, budget,
trace) belongs to the executor, so a provider only talks to its server and raises plain exceptions, or `ProviderError`
where it knows how the failure may be retried.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from concertino.text.foreign_text import break_control_tokens, break_in_json, quote_data

from .attachment import Attachment
from .errors import UsageError
from .usage import NOTHING, Usage, is_amount

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model wrote it. `arguments` is the raw JSON text, or data where the server parsed it.

    `extra` is the server's own opaque data about the call (a thought signature, say); it goes back to the same server
    unchanged, and to no other.
    """

    name: str
    arguments: str | dict[str, Any]
    id: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data: dict[str, Any] = {"name": self.name, "arguments": self.arguments, "id": self.id}
        return {**data, "extra": dict(self.extra)} if self.extra else data


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        role: system, user, assistant or tool.
        text: the text; empty for an assistant message that only calls.
        tool_calls: native calls of an assistant message.
        call_id: for role `tool`: the id of the call that this answers.
        reasoning: for role `assistant`: text of the reasoning channel, for servers that want it back.
        extra: for role `assistant`: the server's own opaque data, as in `Reply.extra`.
        attachments: for the roles `user` and `tool`: images, audio and files beside the text.
    """

    role: Role
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    reasoning: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; what is empty is left out, and so are the bytes of attachments."""
        data: dict[str, Any] = {"role": self.role, "text": self.text}
        if self.attachments:
            data["attachments"] = [attachment.to_json() for attachment in self.attachments]
        if self.tool_calls:
            data["tool_calls"] = [call.to_json() for call in self.tool_calls]
        if self.call_id:
            data["call_id"] = self.call_id
        if self.reasoning:
            data["reasoning"] = self.reasoning
        if self.extra:
            data["extra"] = dict(self.extra)
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Message:
        """The inverse of `to_json`."""
        calls = tuple(ToolCall(**call) for call in data.get("tool_calls", ()))
        more = data.get("reasoning", ""), data.get("extra", {})
        attachments = tuple(map(Attachment.from_json, data.get("attachments", ())))
        return cls(data["role"], data["text"], calls, data.get("call_id", ""), *more, attachments)

    @classmethod
    def of(cls, reply: Reply) -> Message:
        """A reply as the assistant's message in the further conversation."""
        return cls("assistant", reply.text, reply.tool_calls, "", reply.reasoning, reply.extra)


class Thought(str):
    """A piece of a stream that belongs to the reasoning channel, not to the text of the reply."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample. `None` leaves the choice to the server.

    Attributes:
        max_tokens: upper bound on generated tokens; also what a token budget reserves.
        stop: texts that end the generation.
        seed: for servers that honour one.
        logprobs: ask for token ids and log-probabilities (training).
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    logprobs: bool = False

    def __post_init__(self) -> None:
        for name, value in (("temperature", self.temperature), ("top_p", self.top_p)):
            if value is not None and not is_amount(value):
                raise UsageError(f"Sampling({name}={value!r}): expected a number >= 0")
        # A text is a sequence, too: of its letters.
        if isinstance(self.stop, str):
            raise UsageError(f"Sampling(stop={self.stop!r}): expected several texts, such as ({self.stop!r},)")

    def with_(self, **changes: Any) -> Sampling:
        """A copy with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered.

    Attributes:
        text: the visible text.
        tool_calls: native calls, if the server returns them parsed.
        usage: tokens; money is added by the executor from the pool's prices.
        finish_reason: stop, length, tool_calls, or the server's own word.
        reasoning: text of a separate reasoning channel.
        token_ids, logprobs: the sampled tokens, where `Sampling.logprobs` asked for them and the server has them.
        prompt_token_ids: the tokens that the model was shown, likewise.
        data: the JSON value of the text where the request had a `schema`, checked against it; set by the executor.
        extra: the server's own opaque data (what it answered as, what a next turn must send back).
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = NOTHING
    finish_reason: str = "stop"
    reasoning: str = ""
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    data: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; what is empty is left out."""
        data: dict[str, Any] = {"text": self.text, "finish_reason": self.finish_reason}
        if self.tool_calls:
            data["tool_calls"] = [call.to_json() for call in self.tool_calls]
        if usage := self.usage.to_json():
            data["usage"] = usage
        if self.reasoning:
            data["reasoning"] = self.reasoning
        if self.token_ids is not None:
            data["token_ids"] = list(self.token_ids)
        if self.logprobs is not None:
            data["logprobs"] = list(self.logprobs)
        if self.prompt_token_ids is not None:
            data["prompt_token_ids"] = list(self.prompt_token_ids)
        if self.data is not None:
            data["data"] = self.data
        if self.extra:
            data["extra"] = dict(self.extra)
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Reply:
        """The inverse of `to_json`."""
        return cls(
            text=data["text"],
            tool_calls=tuple(ToolCall(**call) for call in data.get("tool_calls", ())),
            usage=Usage.from_json(data.get("usage", {})),
            finish_reason=data.get("finish_reason", "stop"),
            reasoning=data.get("reasoning", ""),
            token_ids=tuple(data["token_ids"]) if "token_ids" in data else None,
            logprobs=tuple(data["logprobs"]) if "logprobs" in data else None,
            prompt_token_ids=tuple(data["prompt_token_ids"]) if "prompt_token_ids" in data else None,
            data=data.get("data"),
            extra=data.get("extra", {}),
        )


def _quoted(message: Message) -> Message:
    """A message without control tokens; the very message where there are none."""
    text, reasoning = break_control_tokens(message.text), break_control_tokens(message.reasoning)
    calls = tuple(_quoted_call(call) for call in message.tool_calls)
    if text == message.text and reasoning == message.reasoning and calls == message.tool_calls:
        return message
    return replace(message, text=text, reasoning=reasoning, tool_calls=calls)


def _quoted_call(call: ToolCall) -> ToolCall:
    given = call.arguments
    arguments = break_in_json(given) if isinstance(given, str) else quote_data(given, break_control_tokens)
    name = break_control_tokens(call.name)
    return call if arguments == given and name == call.name else replace(call, name=name, arguments=arguments)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Everything a model is asked with.

    Attributes:
        messages: the conversation so far.
        tools: OpenAI-style function objects for native tool calling.
        sampling: how to sample.
        idempotency_key: stays the same when a request is repeated after a crash or a transport failure.
        schema: JSON schema that the reply's text is to satisfy. The executor checks every reply against it, whatever
            the server promises.

    Raises:
        UsageError: tools and a schema together. Servers answer such a request with the JSON and lose the call.
    """

    messages: Sequence[Message]
    tools: Sequence[dict[str, Any]] = ()
    sampling: Sampling = Sampling()
    idempotency_key: str = ""
    schema: Mapping[str, Any] | None = None

    def keyed(self, key: str) -> ChatRequest:
        """The same request under an idempotency key."""
        # Written out here and below: `dataclasses.replace` costs ten times as much, and each request pays for it.
        return ChatRequest(self.messages, self.tools, self.sampling, key, self.schema)

    def sampled(self, sampling: Sampling) -> ChatRequest:
        """The same request with another sampling."""
        return ChatRequest(self.messages, self.tools, sampling, self.idempotency_key, self.schema)

    def quoted(self, quote_tools: Callable[[Sequence[dict[str, Any]]], list[dict[str, Any]]]) -> ChatRequest:
        """The same request without control tokens of any model family in what it says, for the door of a server.

        Args:
            quote_tools: quotes the function objects; a `ToolQuoting`, which the caller keeps.
        """
        messages = [_quoted(message) for message in self.messages]
        tools = quote_tools(self.tools) if self.tools else self.tools
        schema = None if self.schema is None else quote_data(self.schema, break_control_tokens)
        return ChatRequest(messages, tools, self.sampling, self.idempotency_key, schema)

    def __post_init__(self) -> None:
        if self.schema is not None and self.tools:
            raise UsageError(
                "a request has either tools or a schema for its reply: with both, servers drop the tool call; ask with "
                "the tools first, then without them for the structured answer"
            )


class Model:
    """A chat model. Providers subclass it and write `chat`; `stream` and `count_tokens` have defaults.

    An instance serves many calls at once. `close` is called once, when the pool that opened it is closed.
    """

    async def chat(self, request: ChatRequest) -> Reply:
        """Answer a request.

        Raises:
            ProviderError: to say how a failure may be retried; any other exception counts as the plugin's bug.
        """
        raise NotImplementedError

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Reply]:
        """Yield pieces of text, then the whole `Reply` last. By default the reply comes as one piece.

        Pieces of the reasoning channel are yielded as `Thought`; the others add up to the reply's text.
        """
        reply = await self.chat(request)
        if reply.reasoning:
            yield Thought(reply.reasoning)
        if reply.text:
            yield reply.text
        yield reply

    def count_tokens(self, text: str) -> int:
        """Tokens of a text. The default estimate (a token per 3 bytes of UTF-8) errs on the high side for prose."""
        return len(text.encode("utf-8", "surrogatepass")) // 3 + 1

    async def close(self) -> None:
        """Release connections and processes."""
