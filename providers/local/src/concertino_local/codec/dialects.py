"""Reply formats: what of a generated text is reasoning, what is a tool call, and what is to be seen.

A `ReplyReader` is fed the raw text in pieces and gives the visible text in pieces; reasoning and calls are collected.
Feeding a text at once or character by character gives the same. Tool calls are read only where tools were offered;
otherwise their marks stay in the text, which may have a meaning for the caller.

A call that cannot be read is kept as raw text, so that whoever reads the arguments says once what is wrong with them:
`ToolCall("add", '{"a": 2, "b":')`. Without arguments a call has `"{}"`, and without a name it is called `"?"`.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from concertino import ToolCall

from .text import overlap

NAMELESS = "?"
FORMAT_MARKS: dict[str, tuple[str, ...]] = {
    "hermes": ("<think>", "</think>", "<tool_call>", "</tool_call>"),
    "harmony": ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>", "<|constrain|>"),
    "llama": ("<|python_tag|>",),
    "plain": (),
}
"""The special tokens that a reader of each reply format looks for."""


class ReplyReader(ABC):
    """Reads one reply.

    Attributes:
        reasoning: the reasoning so far.
        calls: the tool calls so far, without ids.
        speaking: whether what comes next is part of the visible text, as far as is known.
        thinking: whether it is part of the reasoning.
    """

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.speaking = True
        self.thinking = False
        self._thoughts: list[str] = []

    @property
    def reasoning(self) -> str:
        """The reasoning, without the space around it."""
        return "\n".join(filter(None, (thought.strip() for thought in self._thoughts)))

    @abstractmethod
    def feed(self, text: str) -> str:
        """The visible text that is certain with some text more."""

    @abstractmethod
    def finish(self) -> str:
        """The rest of the visible text, at the end of the reply."""


class PlainReader(ReplyReader):
    """Everything is visible."""

    def feed(self, text: str) -> str:
        """The same text."""
        return text

    def finish(self) -> str:
        """Nothing is held back."""
        return ""


_ENDS = {"<think>": "</think>", "<tool_call>": "</tool_call>"}


class HermesReader(ReplyReader):
    """`<think>…</think>` and `<tool_call>{"name": …, "arguments": …}</tool_call>`, as Qwen and Hermes models write.

    Space between a block and the text beside it belongs to neither.

    Args:
        tools: the tools that were offered; without any, calls stay in the text.
        thinking: the prompt has opened a `<think>` block already.
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]] = (), *, thinking: bool = False) -> None:
        super().__init__()
        self._tools = tools
        self._opens = ["<think>", "<tool_call>"] if tools else ["<think>"]
        self._buffer = ""
        self._inside = "<think>" if thinking else ""
        self._after_block = False
        self._space = ""  # before the block that is open
        self.speaking, self.thinking = not thinking, thinking

    def feed(self, text: str) -> str:
        """The visible text that is certain with some text more."""
        self._buffer += text
        pieces: list[str] = []
        while (piece := self._advance()) is not None:
            pieces.append(piece)
        return "".join(pieces)

    def finish(self) -> str:
        """The rest of the visible text; a block that was not closed ends here."""
        rest, self._buffer = self._buffer, ""
        if self._inside == "<tool_call>" and not rest.lstrip().startswith(("{", "<function=")):
            return f"{self._space}<tool_call>{rest}"  # it only speaks of the mark
        if self._inside:
            self._close(rest)
            return ""
        return rest.lstrip() if self._after_block else rest

    def _advance(self) -> str | None:
        """Visible text up to the next mark, None if more text is needed."""
        if self._inside:
            return self._leave()
        if self._after_block:
            self._buffer = self._buffer.lstrip()
            if not self._buffer:
                return None
        marks = [(place, mark) for mark in self._opens if (place := self._buffer.find(mark)) >= 0]
        if marks:
            place, mark = min(marks)
            before, self._buffer = self._buffer[:place], self._buffer[place + len(mark) :]
            self._inside, self.speaking, self.thinking = mark, False, mark == "<think>"
            self._space = before[len(before.rstrip()) :]
            return before.rstrip()
        return self._certain()

    def _leave(self) -> str | None:
        """Leave a block: at its end, and a call also where the next one begins; None if more text is needed."""
        body, mark, rest = self._buffer.partition(_ENDS[self._inside])
        if self._inside == "<tool_call>" and self._inside in body:
            body, mark, rest = self._buffer.partition(self._inside)
            self._close(body)
            self._buffer, self._space = rest, ""
            return ""
        if not mark:
            return None
        self._close(body)
        self._buffer, self._inside, self._after_block = rest, "", True
        self.speaking, self.thinking = True, False
        return ""

    def _certain(self) -> str | None:
        """Text that no mark can take back: all but a beginning mark and the space before it."""
        keep = max(overlap(self._buffer, mark) for mark in self._opens)
        text = self._buffer[: len(self._buffer) - keep].rstrip()
        if not text:
            return None
        self._buffer, self._after_block = self._buffer[len(text) :], False
        return text

    def _close(self, body: str) -> None:
        if self._inside == "<think>":
            self._thoughts.append(body)
        else:
            self.calls.append(read_call(body, self._tools))


class LlamaReader(ReplyReader):
    """A reply that is a JSON object, or several after `;`, is a call: Llama 3's `{"name": …, "parameters": …}`.

    Args:
        tools: the tools that were offered; without any, everything is visible.
    """

    _MARK = "<|python_tag|>"

    def __init__(self, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__()
        self._tools = tools
        self._buffer = ""
        self._decided = not tools

    def feed(self, text: str) -> str:
        """Nothing while the text may be a call."""
        if self._decided:
            return text
        self._buffer += text
        begun = self._buffer.lstrip()
        if not begun or begun.startswith(("{", self._MARK)) or self._MARK.startswith(begun):
            return ""
        self._decided = True
        text, self._buffer = self._buffer, ""
        return text

    def finish(self) -> str:
        """The whole text, if it was no call."""
        held, self._buffer = self._buffer, ""
        body = held.strip().removeprefix(self._MARK).strip()
        if self._decided or not body.startswith("{") or '"name"' not in body:
            return held
        self.calls = [read_call(part, self._tools) for part in _objects(body)]
        return ""


class HarmonyReader(ReplyReader):
    """The channels of GPT-OSS: `analysis` is reasoning, `final` is visible, what goes `to=functions.…` is a call.

    Args:
        tools: the tools that were offered; without any, calls are visible as text.
    """

    _MARKS = FORMAT_MARKS["harmony"]
    _RECIPIENT = re.compile(r"to=(?:functions\.)?([^\s<]+)")

    def __init__(self, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__()
        self._tools = tools
        self._buffer = ""
        self._header = ""
        self._body: list[str] | None = None  # None while a header is read
        self._spoken = False
        self.speaking = False

    def feed(self, text: str) -> str:
        """The visible text that is certain with some text more."""
        self._buffer += text
        pieces: list[str] = []
        while self._buffer:
            marks = [(place, mark) for mark in self._MARKS if (place := self._buffer.find(mark)) >= 0]
            if not marks:
                keep = max(overlap(self._buffer, mark) for mark in self._MARKS)
                cut = len(self._buffer) - keep
                pieces.append(self._take(self._buffer[:cut]))
                self._buffer = self._buffer[cut:]
                break
            place, mark = min(marks)
            pieces.append(self._take(self._buffer[:place]))
            self._buffer = self._buffer[place + len(mark) :]
            pieces.append(self._turn(mark))
        return "".join(pieces)

    def finish(self) -> str:
        """The rest of the visible text; a message that was not closed ends here."""
        rest, self._buffer = self._buffer, ""
        piece = self._take(rest)
        if not (self._spoken or self._thoughts or self.calls) and self._body is None:
            piece, self._header = self._header, ""  # it wrote no channel at all
        self._close()
        return piece

    def _take(self, text: str) -> str:
        if self._body is None:
            self._header += text
            return ""
        self._body.append(text)
        return text if self.speaking else ""

    def _turn(self, mark: str) -> str:
        """A mark: it opens a body, or begins a header."""
        if mark == "<|message|>" and self._body is None:
            self._body = []
            self.thinking = not self._is_call() and "analysis" in self._header
            self.speaking = not (self._is_call() or self.thinking)
            separator = "\n" if self.speaking and self._spoken else ""
            self._spoken = self._spoken or self.speaking
            return separator
        if mark in ("<|constrain|>", "<|channel|>") and self._body is None:
            self._header += " "
            return ""
        self._close()
        return ""

    def _is_call(self) -> bool:
        return bool(self._tools) and bool(self._RECIPIENT.search(self._header))

    def _close(self) -> None:
        if self._body is not None:
            body = "".join(self._body)
            if self._is_call():
                found = self._RECIPIENT.search(self._header)
                name = found.group(1) if found else NAMELESS
                self.calls.append(ToolCall(name, body.strip() or "{}"))
            elif self.thinking:
                self._thoughts.append(body)
        self._header, self._body, self.speaking, self.thinking = "", None, False, False


def guess_format(template: str) -> str:
    """The reply format that a chat template speaks of."""
    if "<|channel|>" in template:
        return "harmony"
    if "<tool_call>" not in template and ("<|python_tag|>" in template or '"parameters":' in template):
        return "llama"
    return "hermes"


def make_reader(reply_format: str, tools: Sequence[Mapping[str, Any]], *, thinking: bool) -> ReplyReader:
    """A reader of one of `settings.FORMATS`, "auto" excepted."""
    if reply_format == "hermes":
        return HermesReader(tools, thinking=thinking)
    readers: dict[str, Callable[[], ReplyReader]] = {
        "plain": PlainReader,
        "llama": lambda: LlamaReader(tools),
        "harmony": lambda: HarmonyReader(tools),
    }
    return readers[reply_format]()


# -- one call --------------------------------------------------------------------------------------------------

_NAME = re.compile(r'"name"\s*:\s*"((?:[^"\\]|\\.)*)"')
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s*:\s*')
_FUNCTION = re.compile(r"<function=([^>\s]+)\s*>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)\s*>\n?(.*?)\n?</parameter>", re.DOTALL)
_decoder = json.JSONDecoder()


def read_call(body: str, tools: Sequence[Mapping[str, Any]] = ()) -> ToolCall:
    """A call from the text between its marks, in JSON or in Qwen Coder's tags."""
    body = body.strip()
    if function := _FUNCTION.match(body):
        return _read_tags(function.group(1), function.group(2), tools)
    try:
        data = json.loads(body)
    except ValueError:
        return _read_broken(body)
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        return ToolCall(NAMELESS, body)
    value = data["arguments"] if "arguments" in data else data.get("parameters", "")
    return ToolCall(data["name"], "{}" if value in ("", None) else _as_written(body, value))


def _as_written(body: str, value: Any) -> str:
    """The arguments of a readable call in the model's own spelling."""
    found = _ARGUMENTS.search(body)
    if found is not None:
        written, end = _decoder.raw_decode(body, found.end())
        if written == value:
            return body[found.end() : end]
    return json.dumps(value, ensure_ascii=False)


def _read_broken(body: str) -> ToolCall:
    """A call that is not valid JSON: its name if that can be read, and its arguments as they were written."""
    name = _NAME.search(body)
    if name is None:
        return ToolCall(NAMELESS, body)
    found = _ARGUMENTS.search(body)
    rest = body if found is None else body[found.end() :].strip()
    try:
        _, end = _decoder.raw_decode(rest)
        rest = rest if found is None else rest[:end]
    except ValueError:
        if rest.endswith("}") and rest.count("}") > rest.count("{"):
            rest = rest[:-1].rstrip()  # the brace of the object around it
    return ToolCall(_unescape(name.group(1)), rest or body)  # a call that broke off is not one without arguments


def _read_tags(name: str, body: str, tools: Sequence[Mapping[str, Any]]) -> ToolCall:
    given = _PARAMETER.findall(body)
    if not given and body.strip():
        return ToolCall(name, body.strip())
    known = _parameters(name, tools)
    arguments = {key: _value(text, known.get(key, {})) for key, text in given}
    return ToolCall(name, json.dumps(arguments, ensure_ascii=False))


def _value(text: str, schema: Any) -> Any:
    """A value that is written without quotes: what its schema says, else JSON, else text."""
    if isinstance(schema, Mapping) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parameters(name: str, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for tool in tools:
        function = tool.get("function", tool)
        if function.get("name") == name:
            properties: Mapping[str, Any] = (function.get("parameters") or {}).get("properties") or {}
            return properties
    return {}


def _objects(text: str) -> list[str]:
    """The JSON objects of a text, as they were written; what cannot be read is the last one."""
    found: list[str] = []
    while text := text.lstrip("; \n\t"):
        try:
            _, end = _decoder.raw_decode(text)
        except ValueError:
            end = len(text)
        found.append(text[:end])
        text = text[end:]
    return found


def _unescape(name: str) -> str:
    try:
        return str(json.loads(f'"{name}"'))
    except ValueError:
        return name
