"""Reply formats: what of a generated text is reasoning, what is a tool call, and what is to be seen.

A `ReplyReader` is fed the raw text in pieces and gives the visible text in pieces; reasoning and calls are collected.
Feeding a text at once or character by character gives the same. Tool calls are read only where tools were offered;
otherwise their marks stay in the text, which may have a meaning for the caller.

A call that cannot be read is kept as raw text, so that whoever reads the arguments says once what is wrong with them:
`ToolCall("add", '{"a": 2, "b":')`. Without arguments a call has `"{}"`, and without a name it is called `"?"`.
The calls themselves are read by `concertino.text`; here is what has to be known while a reply is still being written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from concertino import ToolCall
from concertino.text import NAMELESS, read_tool_call, read_tool_calls

from .text import overlap

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
        """Return the text unchanged."""
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
        # Space behind a block belongs to no text, so nothing is certain before something else comes.
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
        # Models forget the end of a call before they begin the next one.
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
            call = read_tool_call(body, "hermes", self._tools)
            self.calls.append(ToolCall(call.name, call.arguments))


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
        # The beginning of the mark may still become it.
        if not begun or begun.startswith(("{", self._MARK)) or self._MARK.startswith(begun):
            return ""
        self._decided = True
        text, self._buffer = self._buffer, ""
        return text

    def finish(self) -> str:
        """The whole text, if it was no call."""
        held, self._buffer = self._buffer, ""
        found = read_tool_calls(held, "llama")
        self.calls = [] if self._decided else [ToolCall(call.name, call.arguments) for call in found.calls]
        return "".join(found.outside).strip() if self.calls else held


class HarmonyReader(ReplyReader):
    """The channels of GPT-OSS: `analysis` is reasoning, `final` is visible, what goes `to=functions.…` is a call.

    Args:
        tools: the tools that were offered; without any, calls are visible as text.
    """

    _MARKS = FORMAT_MARKS["harmony"]

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
        return bool(self._tools) and read_tool_call(self._header, "harmony").name != NAMELESS

    def _close(self) -> None:
        if self._body is not None:
            body = "".join(self._body)
            if self._is_call():
                call = read_tool_call(f"{self._header}<|message|>{body}", "harmony")
                self.calls.append(ToolCall(call.name, call.arguments))
            elif self.thinking:
                self._thoughts.append(body)
        self._header, self._body, self.speaking, self.thinking = "", None, False, False


def guess_format(template: str) -> str:
    """The reply format that a chat template speaks of."""
    if "<|channel|>" in template:
        return "harmony"
    # The instructions of Llama 3 show a call with `parameters`, where others have `arguments`.
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
