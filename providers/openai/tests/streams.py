"""Streams as real servers send them, each with what a reader must make of it.

The shapes are those of OpenAI, vLLM, SGLang, llama.cpp, transformers, OpenRouter, Gemini and others; the texts are made
up. `Stream.reply` is what is expected: text, calls, thoughts, finish, or the class of the failure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from concertino import ChatRequest, FailureClass, Message, ProviderError, Reply
from concertino_openai.chat.accumulator import ReplyAccumulator
from concertino_openai.chat.stream import StreamDecoder, reply_of
from concertino_openai.options import OpenAISettings

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
DONE = b"data: [DONE]\n\n"


def sse(data: Any) -> bytes:
    """One event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    """One chunk with one choice; `choice_...` goes into the choice."""
    choice: dict[str, Any] = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    choice |= {key.removeprefix("choice_"): more.pop(key) for key in list(more) if key.startswith("choice_")}
    return sse({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more})


def said(*texts: str) -> bytes:
    """Chunks of content."""
    return b"".join(chunk({"content": text}) for text in texts)


def usage(prompt: int = 5, completion: int = 3, **more: Any) -> bytes:
    """The chunk without choices that holds the usage."""
    return sse({"id": "c1", "model": "m", "choices": [], "usage": numbers(prompt, completion, **more)})


def numbers(prompt: int = 5, completion: int = 3, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}


def call(*, name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A fragment of a call, as a delta."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"tool_calls": [{**more, "function": function}]}


END = chunk(finish="stop")
CALLED = chunk(finish="tool_calls")


@dataclass(frozen=True)
class Stream:
    """A stream and what it says."""

    name: str
    body: bytes
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    reasoning: str = ""
    finish: str = "stop"
    failure: FailureClass | None = None
    server: str = "openai"
    tools: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def settings(self) -> OpenAISettings:
        return OpenAISettings.of({"server": self.server, "model": "m", **dict(self.options)}, "test")

    def reply(self, *pieces: bytes) -> tuple[str, Reply] | ProviderError:
        """What the provider makes of the body, cut as given: the pieces of text together and the reply."""
        settings = self.settings
        fold = ReplyAccumulator(settings.dialect, self.tools, settings.endpoint)
        reading = StreamDecoder(fold, settings, self.tools)
        try:
            shown = [reading.feed(piece) for piece in pieces or (self.body,)]
            shown.append(reading.finish())
        except ProviderError as error:
            return error
        request = ChatRequest([Message("user", "hi")], tools=[TOOL] if self.tools else [])
        try:
            last, reply = reply_of(fold, request, lambda text: len(text) // 3 + 1, settings)
        except ProviderError as error:
            return error
        return "".join([*shown, last]), reply


def in_tags(text: str) -> str:
    return f"<tool_call>\n{text}\n</tool_call>"


ADD_23 = '{"name": "add", "arguments": {"a": 2, "b": 3}}'
BROKEN = '{"name": "add", "arguments": {"a": 2, "b": '
NOT_ESCAPED = (
    b'data: {"error": "json parser could not parse region as JSON.\n'
    b"Content: '\\n" + BROKEN.encode() + b"\\n'\n"
    b'Error: Expecting value: line 3 column 1 (char 45)"}\n\n'
)

STREAMS: tuple[Stream, ...] = (
    # texts
    Stream("text", chunk({"role": "assistant", "content": ""}) + said("Hel", "lo") + END + usage() + DONE, "Hello"),
    Stream("no done, usage in the last chunk", said("Hello") + chunk(finish="stop", usage=numbers()), "Hello"),
    Stream("no usage", said("Hello") + END + DONE, "Hello"),
    Stream("usage in every chunk", said("He") + chunk({"content": "llo"}, "stop", usage=numbers()) + DONE, "Hello"),
    Stream("text and finish in one chunk", chunk({"content": "Hello"}, "length") + DONE, "Hello", finish="length"),
    Stream(
        "comments",
        b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
        + said("Hello")
        + b":\n\n"
        + END
        + usage(cost=0.25)
        + DONE,
        "Hello",
        server="openrouter",
    ),
    Stream("crlf", (said("Hel", "lo") + END + usage() + DONE).replace(b"\n", b"\r\n"), "Hello"),
    Stream("cr", (said("Hel", "lo") + END + DONE).replace(b"\n", b"\r"), "Hello"),
    Stream("byte order mark", b"\xef\xbb\xbf" + said("Hello") + END + DONE, "Hello"),
    Stream("no space after the colon", (said("Hello") + END + DONE).replace(b"data: ", b"data:"), "Hello"),
    Stream(
        "other fields",
        b"event: message\nid: 7\nretry: 10\n" + said("Hello") + b"event: ping\n\n" + END + DONE,
        "Hello",
    ),
    Stream(
        "data over several lines, crlf",
        b'data: {"choices": [{"delta": {"content": "Hello"},\r\ndata: "finish_reason": "stop"}]}\r\n\r\n',
        "Hello",
    ),
    Stream(
        "data over several lines",
        b'data: {"choices": [{"index": 0,\ndata: "delta": {"content": "Hello"},\ndata:\ndata\n'
        b'data: "finish_reason": "stop"}]}\n\n' + DONE,
        "Hello",
    ),
    Stream(
        "utf-8",
        "".join(
            f"data: {json.dumps({'choices': [{'delta': {'content': text}}]}, ensure_ascii=False)}\n\n"
            for text in ("Grüße, ", "мир, ", "世界, ", "👋🏽!")
        ).encode()
        + END
        + DONE,
        "Grüße, мир, 世界, 👋🏽!",
    ),
    Stream("no empty line at the end", said("Hello") + END.rstrip(b"\n"), "Hello"),
    Stream("torn off after the finish", said("Hello") + END + usage()[:40], "Hello"),
    Stream("torn off after done", said("Hello") + END + DONE + b'data: {"err', "Hello"),
    Stream(
        "chunks without choices",
        sse({"choices": [], "prompt_filter_results": []}) + b"data:\n\n" + sse({"type": "ping"}) + said("Hello") + END,
        "Hello",
    ),
    Stream("no null", said("Hello") + sse({"choices": [{"finish_reason": "stop"}], "error": None}) + DONE, "Hello"),
    Stream(
        "second choice",
        said("Hel")
        + chunk({"content": "other"}, choice_index=1)
        + said("lo")
        + END
        + chunk(finish="stop", choice_index=1),
        "Hello",
    ),
    Stream(
        "content in parts",
        chunk({"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}) + END,
        "Hello",
    ),
    Stream("refusal", chunk({"content": None, "refusal": "I will not."}) + END, "I will not."),
    # thoughts
    Stream("reasoning", chunk({"reasoning": "Hm."}) + said("\n\n", "Hello") + END, "Hello", reasoning="Hm."),
    Stream("reasoning_content", chunk({"reasoning_content": "Hm."}) + said("Hello") + END, "Hello", reasoning="Hm."),
    Stream(
        "both names",
        chunk({"reasoning": "Hm.", "reasoning_content": "Hm."}) + said("Hello") + END,
        "Hello",
        reasoning="Hm.",
    ),
    Stream(
        "reasoning_details",
        chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "H", "signature": None}]})
        + chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "m.", "signature": "s"}]})
        + said("Hello")
        + END,
        "Hello",
        reasoning="Hm.",
        server="openrouter",
    ),
    Stream(
        "thoughts in tags",
        said("\n<th", "ink>\n", "H", "m.</thi", "nk>\n", "\nHel", "lo") + END,
        "Hello",
        reasoning="Hm.",
        server="llama-cpp-python",
    ),
    Stream(
        "thoughts that the prompt opened",
        said("Hm.</", "think>Hello") + END,
        "Hello",
        reasoning="Hm.",
        server="vllm",
        options=(("think", "open"),),
    ),
    Stream("thoughts cut off", said("<think>H", "m.") + chunk(finish="length"), "", (), "Hm.", "length", server="vllm"),
    Stream("tags are text", said("<think>Hm.</think>") + END, "<think>Hm.</think>", options=(("think", "off"),)),
    Stream("only thoughts", chunk({"reasoning": "po"}) + chunk({"reasoning": "ng"}) + END, "pong", server="vllm"),
    # calls
    Stream(
        "two calls in fragments",
        chunk(call(index=0, id="a", name="add", arguments=""))
        + chunk(call(index=0, arguments='{"a": 2, '))
        + chunk(call(index=1, id="b", name="sub", arguments='{"a"'))
        + chunk(call(index=0, arguments='"b": 3}'))
        + chunk(call(index=1, arguments=": 1}"))
        + CALLED
        + usage()
        + DONE,
        calls=(("add", '{"a": 2, "b": 3}'), ("sub", '{"a": 1}')),
        finish="tool_calls",
        tools=True,
    ),
    Stream(
        "a whole call per chunk",
        chunk(call(index=0, id="a", name="add", arguments='{"a": 2}'))
        + chunk(call(index=1, id="b", name="add", arguments='{"a": 3}'))
        + CALLED,
        calls=(("add", '{"a": 2}'), ("add", '{"a": 3}')),
        finish="tool_calls",
        server="transformers",
        tools=True,
    ),
    Stream(
        "every call has number 0",
        chunk(call(index=0, id="a", name="add", arguments='{"a": 2}'))
        + chunk(call(index=0, id="b", name="add", arguments='{"a": 3}'))
        + CALLED,
        calls=(("add", '{"a": 2}'), ("add", '{"a": 3}')),
        finish="tool_calls",
        server="google",
        tools=True,
    ),
    Stream(
        "no number and no id",
        chunk(call(name="add", arguments='{"a"'))
        + chunk(call(arguments=": 2}"))
        + chunk(call(name="add", arguments='{"a": 3}'))
        + END,
        calls=(("add", '{"a": 2}'), ("add", '{"a": 3}')),
        tools=True,
    ),
    Stream(
        "arguments as data",
        chunk(call(index=0, name="add", arguments={"a": 2})) + chunk(call(index=1, name="now", arguments={})) + CALLED,
        calls=(("add", '{"a": 2}'), ("now", "{}")),
        finish="tool_calls",
        server="ollama",
        tools=True,
    ),
    Stream(
        "no arguments",
        chunk(call(index=0, id="a", name="now")) + chunk(call(index=1, id="b", name="now", arguments=None)) + CALLED,
        calls=(("now", "{}"), ("now", "{}")),
        finish="tool_calls",
        server="vllm",
        tools=True,
    ),
    Stream(
        "arguments that are no object",
        chunk(call(index=0, id="a", name="now", arguments="511")) + chunk(call(index=0, arguments="1111")) + END,
        calls=(("now", "5111111"),),
        server="vllm",
        tools=True,
    ),
    Stream(
        "signature",
        chunk(call(index=0, id="a", name="add", arguments="{}", extra_content={"google": {"thought_signature": "s"}}))
        + END,
        calls=(("add", "{}"),),
        server="google",
        tools=True,
    ),
    Stream(
        "text before a call",
        said("I add.\n") + chunk(call(index=0, id="a", name="add", arguments="{}")) + CALLED,
        "I add.",
        (("add", "{}"),),
        finish="tool_calls",
        tools=True,
    ),
    Stream(
        "calls in the text",
        said("<think>Two.</think>\n\nI add.\n<to", "ol_call>", f"\n{ADD_23}\n</tool_", "call>\n")
        + said(in_tags('{"name": "now"}'))
        + END,
        "I add.",
        (("add", '{"a": 2, "b": 3}'), ("now", "{}")),
        "Two.",
        server="llama-cpp-python",
        tools=True,
    ),
    Stream("calls in a text without tools", said(in_tags(ADD_23)) + END, in_tags(ADD_23), server="llama-cpp-python"),
    Stream(
        "the tag is only mentioned",
        said("Write <tool_call> ", "before it.") + END,
        "Write <tool_call> before it.",
        server="llama-cpp-python",
        tools=True,
    ),
    # broken calls: four shapes, one meaning
    Stream(
        "broken call in the text",
        said("<tool_call>\n", BROKEN, "\n</tool_call>") + END,
        calls=(("add", '{"a": 2, "b":'),),
        server="llama-cpp-python",
        tools=True,
    ),
    Stream(
        "broken call in fragments",
        chunk(call(index=0, id="a", name="add"))
        + chunk(call(index=0, arguments='{"a": 2,'))
        + chunk(call(index=0, arguments=' "b": '))
        + CALLED
        + DONE,
        calls=(("add", '{"a": 2, "b":'),),
        finish="tool_calls",
        server="vllm",
        tools=True,
    ),
    Stream(
        "broken call as an error",
        chunk({"role": "assistant"}) + NOT_ESCAPED,
        calls=(("add", '{"a": 2, "b":'),),
        finish="tool_calls",
        server="transformers",
        tools=True,
    ),
    Stream(
        "broken call as an error without its text",
        chunk({"role": "assistant"}) + sse({"error": "'arguments'"}),
        calls=(("?", "'arguments'"),),
        finish="tool_calls",
        server="transformers",
        tools=True,
    ),
    # tokens
    Stream(
        "tokens",
        chunk(
            {"content": "He"},
            choice_token_ids=[7],
            choice_logprobs={"content": [{"logprob": -0.5}]},
            prompt_token_ids=[1, 2, 3],
        )
        + chunk(
            {"content": "llo"},
            "stop",
            choice_token_ids=[8, 9],
            choice_logprobs={"content": [{"logprob": -0.25}, {"logprob": 0.0}]},
        ),
        "Hello",
        server="vllm",
    ),
    Stream(
        "log-probabilities that are missing",
        chunk({"content": "Hello"}, "stop", choice_logprobs={"content": [{"token": "Hello"}]}),
        "Hello",
    ),
    # what comes after the finish
    Stream("error after the finish", said("Hello") + END + sse({"error": {"code": 500, "message": "x"}}), "Hello"),
    Stream("rubbish after the finish", said("Hello") + END + b"data: bye\n\n" + b"data: [DONE] \n\n", "Hello"),
    # failures
    Stream("closed before the finish", said("Hel") + DONE, failure=FailureClass.CUT_OFF),
    Stream("torn in the middle", (said("Hel", "lo") + END)[:-60], failure=FailureClass.CUT_OFF),
    Stream("nothing", b"", failure=FailureClass.MAYBE_EXECUTED),
    Stream("only comments", b": hello\n\n: hello\n\n", failure=FailureClass.MAYBE_EXECUTED),
    Stream("refused without a word", b"", failure=FailureClass.CALLER, server="llama-cpp-python"),
    Stream(
        "error at the beginning",
        sse({"error": {"code": 429, "message": "slow down"}}),
        failure=FailureClass.THROTTLED,
        server="openrouter",
    ),
    Stream(
        "error in the middle",
        said("Hel") + sse({"error": {"code": 502, "message": "away"}, "choices": [{"finish_reason": "error"}]}),
        failure=FailureClass.CUT_OFF,
        server="openrouter",
    ),
    Stream(
        "error in a field of its own",
        b'error: {"code": 503, "message": "Loading model"}\n\n',
        failure=FailureClass.THROTTLED,
        server="llama.cpp",
    ),
    Stream("error without tools", chunk({"role": "assistant"}) + NOT_ESCAPED, failure=FailureClass.MAYBE_EXECUTED),
    Stream("no json at the beginning", b"data: upstream is away\n\n", failure=FailureClass.MAYBE_EXECUTED),
    Stream("no json in the middle", said("Hel") + b"data: {nonsense}\n\n", failure=FailureClass.CUT_OFF),
    Stream("a list", sse([{"error": {"code": 400, "message": "bad"}}]), failure=FailureClass.CALLER, server="google"),
    Stream("usage of another form", said("Hello") + END + sse({"usage": [5]}), "Hello"),
    Stream(
        "ids of another form", said("Hello") + chunk(finish="stop", prompt_token_ids=5), failure=FailureClass.CUT_OFF
    ),
    Stream(
        "another form", said("Hel") + sse({"choices": [{"delta": {"tool_calls": [5]}}]}), failure=FailureClass.CUT_OFF
    ),
)
