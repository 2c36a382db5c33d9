"""`ReplyFold`: events of a stream, or one whole message, become the same `Reply`.

Invariant: the reply depends on what was said, not on how it was cut into events; and the pieces that `feed` gives add
up to the text of the reply. A stream is complete only after its stop reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from concertino import ChatRequest, FailureClass, ProviderError, Reply, Thought, ToolCall, Usage

from .options import AnthropicSettings
from .request import Block, outline

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}

BLOCKS = 5_000
"""Blocks of one reply at most, calls among them."""


class ReplyFold:
    """Gathers one reply.

    Args:
        settings: of the model.
        prefix: digest of what the reply was asked with.

    Attributes:
        stop_reason: why the reply ended, in the API's words; empty while it has not.
        stopped: the last event has come.
        request_id: of the server.
    """

    def __init__(self, settings: AnthropicSettings, prefix: str) -> None:
        self._settings = settings
        self._prefix = prefix
        self._blocks: dict[int, Block] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}
        self._usage: dict[str, Any] = {}
        self._origin: dict[str, Any] = {}
        self._stop_details: Mapping[str, Any] = {}
        self.stop_reason = ""
        self.stopped = False
        self.request_id = ""

    @property
    def begun(self) -> bool:
        """Whether anything of the reply has arrived."""
        return bool(self._blocks)

    def feed(self, event: Mapping[str, Any]) -> str:
        """Take an event; returns the text, or the `Thought`, that can be shown now."""
        match event.get("type"):
            case "message_start":
                self._message(event["message"])
            case "content_block_start":
                return self._start(event["index"], event["content_block"])
            case "content_block_delta":
                return self._delta(event["index"], event["delta"])
            case "message_delta":
                self._end(event)
            case "message_stop":
                self.stopped = True
        return ""  # pings, ends of blocks, and events that are newer than this reader

    def whole(self, message: Mapping[str, Any]) -> list[str]:
        """Take a whole message; returns what can be shown of it."""
        self._message(message)
        shown = [self._start(index, block) for index, block in enumerate(message["content"])]
        self._end({"delta": message})
        return [piece for piece in shown if piece]

    def _message(self, message: Mapping[str, Any]) -> None:
        self._origin = {name: message[name] for name in ("id", "model") if message.get(name)}
        self._usage.update(message.get("usage") or {})

    def _start(self, index: int, block: Mapping[str, Any]) -> str:
        if len(self._blocks) == BLOCKS:
            raise ValueError(f"more than {BLOCKS:,} blocks")
        self._blocks[index] = dict(block)
        kind = block["type"]
        if kind == "text":
            return self._add(index, "text", block.get("text") or "")
        if kind == "thinking":
            self._add(index, "signature", block.get("signature") or "")
            return Thought(self._add(index, "thinking", block.get("thinking") or ""))
        if kind == "tool_use" and block.get("input"):
            self._add(index, "input", json.dumps(block["input"], ensure_ascii=False))
        return ""

    def _delta(self, index: int, delta: Mapping[str, Any]) -> str:
        match delta.get("type"):
            case "text_delta":
                return self._add(index, "text", delta["text"])
            case "thinking_delta":
                return Thought(self._add(index, "thinking", delta["thinking"]))
            case "signature_delta":
                self._add(index, "signature", delta["signature"])
            case "input_json_delta":
                self._add(index, "input", delta["partial_json"])
        return ""

    def _add(self, index: int, what: str, piece: str) -> str:
        self._parts.setdefault((index, what), []).append(piece)
        return piece

    def _end(self, event: Mapping[str, Any]) -> None:
        delta = event["delta"]
        self.stop_reason = delta.get("stop_reason") or self.stop_reason
        self._stop_details = delta.get("stop_details") or self._stop_details
        # The numbers are totals so far; what is not said has not changed.
        self._usage.update({name: value for name, value in (event.get("usage") or {}).items() if value is not None})

    # -- the reply -----------------------------------------------------------------------------------------------------

    def reply(self, request: ChatRequest, count: Callable[[str], int]) -> Reply:
        """The whole reply.

        Raises:
            ProviderError: the model declined; what it consumed is with the error.
        """
        usage = self.usage(request, count)
        if self.stop_reason == "refusal":
            raise self._declined(usage)
        blocks = [self._block(index) for index in sorted(self._blocks)]
        extra: dict[str, Any] = dict(self._origin)
        if self.request_id:
            extra["request_id"] = self.request_id
        if order := outline(blocks):
            extra |= {"endpoint": self._settings.endpoint, "prefix": self._prefix, "blocks": order}
        return Reply(
            self._joined("text"),
            self._calls(),
            usage,
            _REASONS.get(self.stop_reason, self.stop_reason),
            "\n\n".join(filter(None, (self._part(index, "thinking").strip() for index in sorted(self._blocks)))),
            extra=extra,
        )

    def usage(self, request: ChatRequest, count: Callable[[str], int]) -> Usage:
        """The usage so far; what a broken stream did not report is estimated, and marked so."""
        fresh, cached, written = (
            _number(self._usage.get(name))
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        read, output = fresh + cached + written, _number(self._usage.get("output_tokens"))
        details = self._usage.get("output_tokens_details") or {}
        estimated = 0
        if not read:
            read, estimated = sum(count(message.text) + 4 for message in request.messages), 1
        if not self.stop_reason:
            said = "".join(piece for parts in self._parts.values() for piece in parts)
            output, estimated = max(output, count(said) if said else 0), 1
        return Usage(
            input_tokens=read,
            output_tokens=output,
            cached_tokens=cached,
            cache_write_tokens=written,
            reasoning_tokens=min(_number(details.get("thinking_tokens")), output),
            estimated=estimated,
        )

    def _declined(self, usage: Usage) -> ProviderError:
        category, why = self._stop_details.get("category"), self._stop_details.get("explanation")
        about = f" ({category})" if category else ""
        return ProviderError(
            f"{self._settings.model} declined the request{about}: {why or 'it gave no explanation'}",
            failure=FailureClass.CALLER,
            usage=usage,
        )

    def _calls(self) -> tuple[ToolCall, ...]:
        used = [index for index in sorted(self._blocks) if self._blocks[index]["type"] == "tool_use"]
        calls = [
            ToolCall(block["name"], self._part(index, "input").strip() or "{}", block.get("id") or "")
            for index in used
            for block in [self._blocks[index]]
        ]
        # A call that the length cut off before its arguments had no time for them; to run it without would be a guess.
        if used and self.cut_off and used[-1] == max(self._blocks) and not self._part(used[-1], "input").strip():
            last = calls[-1]
            calls[-1] = ToolCall(last.name, f'{{"name": {json.dumps(last.name)}, "arguments":', last.id)
        return tuple(calls)

    @property
    def cut_off(self) -> bool:
        """Whether a limit ended the reply."""
        return _REASONS.get(self.stop_reason) == "length"

    def _block(self, index: int) -> Block:
        block = self._blocks[index]
        if block["type"] == "text":
            return {"type": "text", "text": self._part(index, "text")}
        if block["type"] == "thinking":
            return {**block, **{name: self._part(index, name) for name in ("thinking", "signature")}}
        return block

    def _part(self, index: int, what: str) -> str:
        return "".join(self._parts.get((index, what), ()))

    def _joined(self, what: str) -> str:
        return "".join(self._part(index, what) for index in sorted(self._blocks))


def _number(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
