"""Experts for the two strategies that call in JSON and quote: rounds of parallel calls, and one call per turn."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from concertino import Message
from concertino.text import ReadingError, read_json, write_tool_call

from concertino_toy.reading import ObservedLine, call_blocks, write_boxes

from .expert import Expert, turns_of
from .progress import PartAttempt, PlannedCall, QuestionProgress

_PARAGRAPH = re.compile(r"\$\{question\.(\d+)\}")


def answer_text(progress: QuestionProgress, quoted: bool = False) -> str:
    """The answer as it is asked for: a box for each part."""
    return " ".join(write_boxes(progress.answers(quoted)))


class CallingExpert(Expert):
    """What both have in common: how calls are written, and how one knows later what a call was for."""

    def read(self, progress: QuestionProgress, messages: Sequence[Message]) -> int:
        turns = turns_of(messages)
        for text, seen in turns:
            for call, observed in zip(calls_in(text), seen, strict=False):
                self._note(progress, call, observed)
        return len(turns)

    def _note(self, progress: QuestionProgress, call: dict[str, Any], seen: ObservedLine) -> None:
        if seen.status == "PARSE_ERR":
            return
        asked = " ".join(map(str, call.get("arguments", {}).values()))
        part = _part_of(progress, asked)
        if part is not None:
            attempt = PartAttempt(str(call.get("name")), seen.status == "OK", seen.text, seen.label)
            progress.attempts[part].append(attempt)

    def argument(self, progress: QuestionProgress, move: PlannedCall) -> dict[str, str]:
        """The arguments of a call: a quote of the part, or of the result that it needs."""
        part = progress.parts[move.part]
        text = f"${{question.{move.part + 1}}}"
        if part.after is not None:
            place = f"${{{progress.place(part.after)}}}"
            text = f"{text} {place}"
        return {move.member.argument: text}


def _part_of(progress: QuestionProgress, asked: str) -> int | None:
    """Which part a call was for, by what it refers to."""
    paragraph = _PARAGRAPH.search(asked)
    if paragraph is None or int(paragraph[1]) > len(progress.parts):
        return None
    return int(paragraph[1]) - 1


def calls_in(text: str) -> list[dict[str, Any]]:
    """The calls of a turn, in order, as lenient readers take them; one that cannot be read is empty."""
    found: list[dict[str, Any]] = []
    for block in call_blocks(text):
        try:
            found.append(dict(read_json(block).value))
        except ReadingError:
            found.append({})
    return found


def thought(progress: QuestionProgress, moves: Sequence[PlannedCall]) -> str:
    """What an expert says of its turn: which parts failed last, and which are asked now."""
    failed = [str(part + 1) for part, tried in enumerate(progress.attempts) if tried and not tried[-1].ok]
    first = f"failed {' '.join(failed)}; " if failed else ""
    return first + (f"ask {', '.join(_told(progress, move) for move in moves)}" if moves else "done")


def _told(progress: QuestionProgress, move: PlannedCall) -> str:
    return f"{move.part + 1} {progress.parts[move.part].topic}"


class RoundsExpert(CallingExpert):
    """For `ParallelRounds(prompt="brief", references=True)`."""

    def turn(self, progress: QuestionProgress, messages: Sequence[Message]) -> str:
        moves = progress.moves()
        if messages[-1].role == "user" and "<answer>" in messages[-1].text:
            return f"<answer>{answer_text(progress, quoted=True)}</answer>"
        calls = [(move.member.name, self.argument(progress, move)) for move in moves] or [("final_answer", {})]
        lines = [write_tool_call(name, json.dumps(arguments), gap="") for name, arguments in calls]
        return "\n".join([f"<reasoning>{thought(progress, moves)}</reasoning>", *lines])

    def slip(self, text: str, share: float) -> str:
        """A brace left out, an unknown name, or no call at all."""
        if "<tool_call>" not in text:
            return text
        if share < 0.4:
            return text.replace("}</tool_call>", "</tool_call>", 1)
        return text.replace('{"name": "', '{"name": "x', 1) if share < 0.8 else text.partition("\n")[0]


class SerialExpert(CallingExpert):
    """For `SerialCalls(prompt="brief", references=True)`."""

    def turn(self, progress: QuestionProgress, messages: Sequence[Message]) -> str:
        moves = progress.moves()[:1]
        if messages[-1].role == "user" and "<answer>" in messages[-1].text and len(messages) > 2:
            return f"<answer>{answer_text(progress, quoted=True)}</answer>"
        name, arguments = "answer", {"text": answer_text(progress, quoted=True)}
        if moves:
            name, arguments = moves[0].member.name, self.argument(progress, moves[0])
        call = write_tool_call(name, json.dumps(arguments))
        return f"<think>\n{thought(progress, moves)}\n</think>\n{call}"

    def slip(self, text: str, share: float) -> str:
        """A brace too few, an unknown name, or no call at all."""
        if share < 0.4:
            return text.replace("}\n</tool_call>", "\n</tool_call>", 1)
        return text.replace('{"name": "', '{"name": "x', 1) if share < 0.8 else text.partition("\n<tool_call>")[0]
