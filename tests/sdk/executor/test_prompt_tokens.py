"""What a request may cost is bounded by its prompt; the prompt of a long run must not be counted anew at every turn."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import concertino as ct


@ct.tool
async def echo(text: str) -> str:
    """Give the text back."""
    return text


def _turn(name: str, arguments: dict[str, str]) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


class Counting(ct.Model):
    """Notes every text whose tokens it is asked for, and how many messages it is shown in the end."""

    def __init__(self, turns: int) -> None:
        self.script = iter([_turn("echo", {"text": str(n)}) for n in range(turns)] + ["<answer>done</answer>"])
        self.counted: Counter[str] = Counter()
        self.shown = 0
        self.most: list[int] = []

    def count_tokens(self, text: str) -> int:
        """A token per character."""
        self.counted[text] += 1
        return len(text)

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The next text."""
        self.shown = len(request.messages)
        self.most.append(sum(len(message.text) + 4 for message in request.messages))
        return ct.Reply(next(self.script))


def _run(model: Counting, budget: ct.Budget) -> ct.Run:
    orchestrator = ct.Orchestrator(ct.ModelSpec("m/counting", lambda: model, prices=ct.Prices(1, 1), max_tokens=16))
    return asyncio.run(orchestrator.run("go", pool=ct.Pool.of(echo), budget=budget))


def test_each_message_of_a_growing_conversation_is_counted_once() -> None:
    model = Counting(6)
    assert _run(model, ct.Budget(tokens=10**6)).answer == "done"
    assert sum(model.counted.values()) == model.shown
    assert max(model.counted.values()) == 1


def test_the_whole_conversation_still_counts_against_the_budget() -> None:
    model = Counting(6)
    _run(model, ct.Budget(tokens=10**6))
    third = model.most[2]
    again = Counting(6)
    run = _run(again, ct.Budget(tokens=third))  # what turns cost is 0 here, so only reservations limit the run
    assert run.stop == "budget"
    assert len(again.most) == 2
