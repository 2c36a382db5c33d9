"""Something to do: numbers to double, a teacher that knows how, and a policy that writes what it is told to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from concertino import ChatRequest, Model, Pool, Reply, Strategy, Usage, tool
from concertino.core.plan import Call
from concertino_bench import Task, TaskSet


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def pool() -> Pool:
    """A pool of one tool."""
    return Pool.of(double)


def tasks(count: int = 4, *, start: int = 1) -> Iterator[Task]:
    """Twice 1, twice 2 and so on."""
    for number in range(start, start + count):
        yield Task(f"twice/{number}", f"What is twice {number}?", (str(2 * number),), "text")


TWICE = TaskSet("scout-judge/twice", "Numbers to double.", tasks)


class Teacher(Model):
    """Plays both roles as they ought to be played, in the words of the strategy's own writer."""

    name = "teacher"

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    async def chat(self, request: ChatRequest) -> Reply:
        """The next text of the role that is asked."""
        text = self.written(request.messages[0].text, request.messages[1].text)
        return Reply(text, usage=Usage(input_tokens=9, output_tokens=len(text)))

    def written(self, instructions: str, question: str) -> str:
        """What the role with these instructions says."""
        if instructions.startswith("You are the judge"):
            found = re.search(r"double: (\d+)", question)
            assert found is not None
            return self.strategy.write_answer(found[1], "I take what was found.", part="judge")[-1]
        number = re.search(r"twice (\d+)", question)
        assert number is not None
        return self.strategy.write_turn([Call("double", {"number": int(number[1])})], "I look.", part="scout")


def teacher(pool: Pool, strategy: Strategy) -> Teacher:
    """The teacher, as settings name it."""
    return Teacher(strategy)
