"""A stand-in for OpenAI's service: chat completions and the Responses API, whole or streamed, over one script.

    with ScriptedServer(reply) as server:          # reply: what a model says to what it was asked
        ...                                        # a program whose OPENAI_BASE_URL is server.address
    server.heard                                   # what it was asked, in order

A script sees a request as `Heard`, which is the same for every framework and both APIs, and says a `Turn`: calls, or an
answer. How an answer is said depends on what the request asks for: as text, as JSON where a schema is enforced, as a
call where the framework wants its answer as one (`final_result`), between tags where the prompt wants them. So one
script serves all frameworks, and none is favoured.

The invariant: a reply is a function of the request alone. The server keeps no state between requests but its record.
It listens on 127.0.0.1, on a free port. Only the standard library is used.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]

ENDING = ("final_result", "final_answer", "answer")
"""Tools that frameworks offer for the answer itself. A tool with the title of the wanted type is one, too."""
PIECE = 8
"""Characters of one piece of a stream."""

_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.S)


@dataclass(frozen=True)
class Turn:
    """What a model says: calls (name and arguments), an answer (a text, or data for a type), or a text as it is."""

    calls: tuple[tuple[str, Json], ...] = ()
    answer: Any = None
    text: str = ""


def calling(*calls: tuple[str, Json]) -> Turn:
    """A turn of calls, which are made at once."""
    return Turn(calls)


def answering(answer: Any) -> Turn:
    """A turn that answers."""
    return Turn((), answer)


def saying(text: str) -> Turn:
    """A turn of a text that is sent as it is, whatever the request asks for."""
    return Turn(text=text)


@dataclass(frozen=True)
class Heard:
    """A request.

    Attributes:
        api: `chat` or `responses`.
        body: as it was sent.
        model: the model's name.
        system: all system messages.
        question: the last text of the user that is a question, not a result or a note of the framework.
        called: names of the calls since that question, in order.
        results: what they returned, as text, in order.
        images: how many images the conversation holds.
        tools: names of the tools on offer.
        calls: how many calls the conversation holds; the next one's id has this number.
        form: how an answer is to be said: `text`, `schema`, `call`, `tags`, `code`, or `end`: by a call that ends the
            work, after which the answer is asked for.
        ending: the tool of the forms `call` and `end`.
    """

    api: str
    body: Json
    model: str
    system: str = ""
    question: str = ""
    called: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    images: int = 0
    tools: tuple[str, ...] = ()
    calls: int = 0
    form: str = "text"
    ending: str = ""

    @property
    def streamed(self) -> bool:
        """Whether a stream was asked for."""
        return bool(self.body.get("stream"))


Script = Callable[[Heard], Turn]
"""What a model says to a request. It may raise `LookupError`: the server then answers 400."""


class ScriptedServer:
    """The server, running from `__enter__` to `__exit__`."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.heard: list[Heard] = []
        self.bytes = 0
        """Of all requests."""
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        """For OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a program finds it."""
        return {"OPENAI_BASE_URL": self.address, "OPENAI_API_KEY": "of-a-stand-in"}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, path: str, body: Json, size: int) -> tuple[Heard, Turn]:
        """Hear a request and look up what the model says.

        Raises:
            LookupError: the script has no reply to it.
        """
        heard = read_responses(body) if path.endswith("/responses") else read_chat(body)
        with self._lock:
            self.heard.append(heard)
            self.bytes += size
        return heard, self.script(heard)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    owner: ScriptedServer

    def handle(self) -> None:
        """Serve a connection until the client leaves, which it may do at any time."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        """Answer one request."""
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        try:
            heard, turn = self.owner.reply(self.path, body, len(raw))
        except LookupError as unknown:
            self._send(400, {"error": {"message": f"the script has no reply: {unknown}", "type": "invalid_request"}})
            return
        write = Responses(heard, turn) if heard.api == "responses" else Chat(heard, turn)
        if heard.streamed:
            self._stream(write.events())
        else:
            self._send(200, write.whole())

    def _send(self, status: int, data: Json) -> None:
        content = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, events: Iterator[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            content = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Write nothing: what is printed is the program's own."""


# -- reading ---------------------------------------------------------------------------------------------------------


@dataclass
class _Reader:
    """Collects what a conversation says, message by message."""

    system: list[str] = field(default_factory=list)
    question: str = ""
    called: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    images: int = 0
    calls: int = 0

    def user(self, content: Any) -> None:
        """A message of the user: a question, or what a framework says in the user's name."""
        parts = [content] if isinstance(content, str) else content
        texts = [part if isinstance(part, str) else part.get("text", "") for part in parts]
        self.images += sum("image" in part.get("type", "") for part in parts if isinstance(part, dict))
        text = "\n".join(texts).strip()
        # A framework may put the next question below the last result.
        text, _, task = text.rpartition("New task:\n") if "New task:\n" in text else (text, "", "")
        told = re.findall(r"<tool_response>(.*?)</tool_response>", text, re.S)
        told += re.findall(r"^Observation:\s*(.*)", text, re.S)
        if told:
            self.results += told
        elif text.strip() and not re.match(r"Write the final answer|PARSE_ERR|<budget>|Calling tools:", text):
            self._asked(text.partition("<budget>")[0])
        if task:
            self._asked(task)

    def _asked(self, question: str) -> None:
        self.question, self.called, self.results = question.strip(), [], []

    def assistant(self, text: str | None, calls: Sequence[str] = ()) -> None:
        """A message of the model; calls may be written in its text."""
        names = [*calls, *(json.loads(found)["name"] for found in _CALL.findall(text or ""))]
        names += re.findall(r"'function': \{'name': '(\w+)'", text or "")
        names += re.findall(r"^print\((\w+)\(", text or "", re.M)
        self.called += names
        self.calls += len(names)


def read_chat(body: Json) -> Heard:
    """A request of chat completions."""
    read = _Reader()
    for message in body["messages"]:
        role, content = message["role"], message.get("content")
        if role in ("system", "developer"):
            read.system.append(_text_of(content))
        elif role == "user":
            read.user(content)
        elif role == "assistant":
            names = [call["function"]["name"] for call in message.get("tool_calls") or ()]
            read.assistant(_text_of(content), names)
        else:
            read.results.append(_text_of(content))
    tools = [tool["function"] for tool in body.get("tools") or ()]
    kind = (body.get("response_format") or {}).get("type", "text")
    return _heard("chat", body, read, tools, kind, _text_of(body["messages"][-1].get("content")))


def read_responses(body: Json) -> Heard:
    """A request of the Responses API."""
    read = _Reader(system=[body.get("instructions") or ""])
    items = body["input"]
    last = ""
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        if kind == "function_call":
            read.assistant(None, [item["name"]])
        elif kind == "function_call_output":
            read.results.append(_text_of(item["output"]))
        elif item.get("role") in ("system", "developer"):
            read.system.append(_text_of(item["content"]))
        elif item.get("role") == "assistant":
            read.assistant(_text_of(item["content"]))
        elif kind == "message":
            read.user(item["content"])
            last = _text_of(item["content"])
    form = ((body.get("text") or {}).get("format") or {}).get("type", "text")
    return _heard("responses", body, read, body.get("tools") or [], form, last)


def _heard(api: str, body: Json, read: _Reader, tools: Sequence[Mapping[str, Any]], kind: str, last: str) -> Heard:
    system = "\n".join(read.system)
    names = tuple(tool["name"] for tool in tools if "name" in tool)
    form, ending = "text", ""
    if kind == "json_schema":
        form = "schema"
    elif last.startswith("Write the final answer") or (not names and "<answer>" in system):
        form = "tags"
    else:
        for tool in tools:
            parameters = tool.get("parameters") or {}
            if tool.get("name") in ENDING or parameters.get("title") == tool.get("name"):
                form, ending = "call" if parameters.get("properties") else "end", str(tool["name"])
        if not names and "final_answer" in system:
            form, ending = "code" if "<code>" in system else "end", "final_answer"
    return Heard(
        api,
        body,
        body["model"],
        system,
        read.question,
        tuple(read.called),
        tuple(read.results),
        read.images,
        names,
        read.calls,
        form,
        ending,
    )


def _text_of(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)


# -- writing ---------------------------------------------------------------------------------------------------------


def _said(heard: Heard, turn: Turn) -> tuple[str, list[tuple[str, Json]]]:
    """The text and the calls in which a model says its turn, in the form that the request asks for."""
    calls = list(turn.calls)
    text = ""
    if turn.text:
        return turn.text, []
    if heard.form == "code":
        return _as_code(calls, turn.answer), []
    if not calls:
        answer = turn.answer
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        if heard.form == "tags":
            text = f"<answer>{text}</answer>"
        elif heard.form == "call":
            data = answer if isinstance(answer, dict) and heard.ending != "final_answer" else {"answer": answer}
            text, calls = "", [(heard.ending, data)]
        elif heard.form == "end":
            text, calls = "", [(heard.ending, {})]
    if calls and not heard.tools:
        written = [json.dumps({"name": name, "arguments": data}, ensure_ascii=False) for name, data in calls]
        return "\n".join(f"<tool_call>{each}</tool_call>" for each in written), []
    return text, calls


def _as_code(calls: Sequence[tuple[str, Json]], answer: Any) -> str:
    """A turn as Python code, for frameworks whose models write their calls so."""
    lines = [f"print({name}({', '.join(f'{key}={value!r}' for key, value in data.items())}))" for name, data in calls]
    return "Thought: as follows.\n<code>\n" + "\n".join(lines or [f"final_answer({answer!r})"]) + "\n</code>"


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


class Chat:
    """A turn in the form of chat completions."""

    def __init__(self, heard: Heard, turn: Turn) -> None:
        self.text, calls = _said(heard, turn)
        self.calls: list[Json] = [
            {
                "id": f"call_{heard.calls + place}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(data)},
            }
            for place, (name, data) in enumerate(calls)
        ]
        self.finish = "tool_calls" if calls else "stop"
        written, prompt = _tokens(self.text), _tokens(json.dumps(heard.body))
        self.usage = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
        self.head = {"id": "chatcmpl-1", "created": int(time.time()), "model": heard.model}

    def whole(self) -> Json:
        """The reply as one object."""
        message: Json = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = self.calls
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return {**self.head, "object": "chat.completion", "choices": [choice], "usage": self.usage}

    def events(self) -> Iterator[str]:
        """The reply as a stream."""
        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(self.text)]
        for place, call in enumerate(self.calls):
            arguments = call["function"]["arguments"]
            begun = {**call, "function": {"name": call["function"]["name"], "arguments": ""}}
            deltas.append({"tool_calls": [{"index": place, **begun}]})
            deltas += [
                {"tool_calls": [{"index": place, "function": {"arguments": piece}}]} for piece in _pieces(arguments)
            ]
        head = {**self.head, "object": "chat.completion.chunk"}
        for delta in deltas:
            yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield _event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": self.finish}]})
        yield _event({**head, "choices": [], "usage": self.usage})
        yield "data: [DONE]\n\n"


class Responses:
    """A turn in the form of the Responses API."""

    def __init__(self, heard: Heard, turn: Turn) -> None:
        self.text, calls = _said(heard, turn)
        self.items: list[Json] = []
        if self.text:
            self.items.append(self._message(self.text, "completed"))
        for place, (name, data) in enumerate(calls):
            number = heard.calls + place
            call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
            self.items.append({**call, "arguments": json.dumps(data), "status": "completed"})
        written, prompt = _tokens(self.text), _tokens(json.dumps(heard.body))
        self.usage = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + written,
        }
        kept = {key: heard.body.get(key) for key in ("instructions", "text", "temperature", "top_p", "metadata")}
        self.head: Json = {
            **kept,
            "id": "resp_1",
            "object": "response",
            "created_at": int(time.time()),
            "model": heard.model,
            "error": None,
            "incomplete_details": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": heard.body.get("tools") or [],
        }

    @staticmethod
    def _message(text: str, status: str) -> Json:
        content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content}

    def whole(self) -> Json:
        """The reply as one object."""
        return {**self.head, "status": "completed", "output": self.items, "usage": self.usage}

    def events(self) -> Iterator[str]:
        """The reply as a stream."""
        begun = {**self.head, "status": "in_progress", "output": [], "usage": None}
        for number, event in enumerate(self._events(begun)):
            yield f"event: {event['type']}\n{_event({**event, 'sequence_number': number})}"

    def _events(self, begun: Json) -> Iterator[Json]:
        yield {"type": "response.created", "response": begun}
        yield {"type": "response.in_progress", "response": begun}
        for place, item in enumerate(self.items):
            at = {"item_id": item["id"], "output_index": place}
            if item["type"] == "message":
                yield from self._message_events(item, at)
            else:
                started = {**item, "arguments": "", "status": "in_progress"}
                yield {"type": "response.output_item.added", "output_index": place, "item": started}
                for piece in _pieces(item["arguments"]):
                    yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
                done = {"arguments": item["arguments"], "name": item["name"]}
                yield {"type": "response.function_call_arguments.done", **at, **done}
            yield {"type": "response.output_item.done", "output_index": place, "item": item}
        yield {"type": "response.completed", "response": self.whole()}

    def _message_events(self, item: Json, at: Json) -> Iterator[Json]:
        at = {**at, "content_index": 0}
        part = item["content"][0]
        started = self._message("", "in_progress")
        yield {"type": "response.output_item.added", "output_index": at["output_index"], "item": started}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        for piece in _pieces(part["text"]):
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}


def _event(data: Any) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
