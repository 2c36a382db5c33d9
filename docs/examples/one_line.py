"""A strategy of your own: a reply is lines `CALL name {arguments}`, or `ANSWER text`."""

import json
from collections.abc import Sequence
from typing import Any

from concertino import Call
from concertino.strategies import FormatIssue, ParsedReply, TaskContext, TextStrategy

FORMAT = 'Answer the question. Write lines such as CALL name {"argument": 1}, or one line ANSWER text. You may call:'


class OneLine(TextStrategy):
    """One line for each call."""

    name = "one-line"

    def system_prompt(self, context: TaskContext) -> str:
        return "\n".join([FORMAT, *(json.dumps(tool["function"]) for tool in context.tools)])

    def read(self, text: str) -> ParsedReply:
        calls: list[Call] = []
        for line in text.strip().split("\n"):
            word, _, rest = line.strip().partition(" ")
            if word == "ANSWER" and not calls:
                return ParsedReply(answer=rest)
            if word == "CALL":
                name, _, arguments = rest.partition(" ")
                calls.append(Call(name, arguments or "{}"))
        missing = FormatIssue("no_call", "Write a line that begins with CALL or ANSWER.", 0, len(text))
        return ParsedReply(calls, issues=[] if calls else [missing])

    def write_turn(self, calls: Sequence[Call], thought: str = "", **_: Any) -> str:
        return "\n".join([f"# {' '.join(thought.split())}", *(f"CALL {c.name} {json.dumps(c.data)}" for c in calls)])

    def write_answer(self, answer: str, thought: str = "", **_: Any) -> tuple[str, ...]:
        return (f"# {' '.join(thought.split())}\nANSWER {' '.join(answer.split())}",)
