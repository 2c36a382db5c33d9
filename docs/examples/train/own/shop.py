"""A pool, a teacher and a reward: a shop whose orchestrator learns which tool to call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import concertino as ct

if TYPE_CHECKING:
    from concertino_train.episodes import Episode

ITEMS = [
    "lamp",
    "rope",
    "kettle",
    "mirror",
    "ladder",
    "basket",
    "broom",
    "bucket",
    "candle",
    "chair",
    "clock",
    "drum",
    "fork",
    "hammer",
    "jar",
    "key",
    "kite",
    "mat",
    "nail",
    "oven",
    "pan",
    "pillow",
    "plate",
    "pump",
    "razor",
    "saw",
    "shelf",
    "soap",
    "stool",
    "tile",
    "torch",
    "towel",
    "vase",
    "wheel",
]
PRICES = {item: 3 + 7 * number % 90 for number, item in enumerate(ITEMS)}
STOCK = {item: 1 + 11 * number % 97 for number, item in enumerate(ITEMS)}
COST = ("What does a {} cost?", "What would one {} cost me?", "Tell me the cost of a {}.", "Does a {} cost much?")
LEFT = (
    "How many pieces of {} are there?",
    "Is there a {} left, and how many?",
    "Count the {}, please.",
    "Any {} here?",
)


@ct.tool
def price(item: str) -> int:
    """What one piece of an item costs, in euros."""
    return PRICES[item]


@ct.tool
def stock(item: str) -> int:
    """How many pieces of an item there are."""
    return STOCK[item]


# --8<-- [start:pool]
def pool() -> ct.Pool:
    """What the orchestrator may call."""
    return ct.Pool.of(price, stock)


# --8<-- [end:pool]
# --8<-- [start:teacher]
class Teacher(ct.Model):
    """Shows how it is done: the next turn of a conversation, in the format of the strategy."""

    def __init__(self, pool: ct.Pool, strategy: ct.Strategy) -> None:
        """Trainings hand over the pool and the strategy."""

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        question, last = request.messages[1].text, request.messages[-1].text
        results = [
            seen for message in request.messages[2:] for seen in re.findall(r"^1\.1 OK (.*)$", message.text, re.M)
        ]
        if last.startswith("Write the <answer>"):
            return ct.Reply(f"<answer>{results[-1] if results else 'unknown'}</answer>")
        if results:
            return ct.Reply(turn("it is known", "final_answer", {}))
        member = "price" if "cost" in question else "stock"
        item = next(each for each in ITEMS if each in re.findall(r"\w+", question))
        return ct.Reply(turn(f"{member} of {item}", member, {"item": item}))


def turn(thought: str, name: str, arguments: dict[str, str]) -> str:
    """One round of one call."""
    call = json.dumps({"name": name, "arguments": arguments})
    return f"<reasoning>{thought}</reasoning>\n<tool_call>{call}</tool_call>"


# --8<-- [end:teacher]
# --8<-- [start:reward]
def brief(episode: Episode) -> float:
    """The fewer calls, the better."""
    return 1 / (1 + len(episode.calls))


# --8<-- [end:reward]
def write_questions() -> None:
    """The questions, as JSON Lines: some to learn from, some to measure on."""
    asked = [(text.format(item), PRICES[item]) for item in ITEMS for text in COST]
    asked += [(text.format(item), STOCK[item]) for item in ITEMS for text in LEFT]
    Random(0).shuffle(asked)
    rows = [{"id": f"q{n}", "question": text, "answer": str(value)} for n, (text, value) in enumerate(asked)]
    for name, part in (("train", rows[:200]), ("test", rows[200:])):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")


if __name__ == "__main__":
    write_questions()
