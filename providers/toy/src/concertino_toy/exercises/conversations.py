"""Conversations to learn from: the teacher leads exercises over the real executor.

Invariant: a message is learned exactly if the teacher wrote it and it was not malformed; a malformed turn stays in the
conversation, before its repair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from random import Random

from concertino import Budget, Executor, Message, Orchestrator, Run
from concertino.core.events import Asked, Replied

from .exercise import Exercise, Writer, draw_exercise
from .teacher import ConductorTeacher
from .wording import problem_writer

FAULT_RATES = (0.0, 0.1, 0.3, 0.5)
"""Shares of failing calls, in turn."""
Said = tuple[Message, bool]
"""A message, and whether it is learned."""


def collect(
    numbers: Iterable[int],
    *,
    seed: int = 0,
    slips: float = 0.06,
    texts: Callable[[Random], Writer] = problem_writer,
) -> list[list[Said]]:
    """Run the leader over exercises, really, by the executor."""

    async def run_all() -> list[list[Said]]:
        found: list[list[Said]] = []
        async with Executor() as executor:
            for number in numbers:
                rate = FAULT_RATES[number % len(FAULT_RATES)]
                exercise = draw_exercise(number, seed=seed, fault_rate=rate, texts=texts)
                leader = ConductorTeacher(exercise.choices, slips=slips, seed=(seed, number))
                found.append(conversation(await _lead(exercise, leader, executor)))
        return found

    return asyncio.run(run_all())


async def _lead(exercise: Exercise, leader: ConductorTeacher, executor: Executor) -> Run:
    orchestrator = Orchestrator(leader, exercise.strategy, executor=executor)
    # A budget that is not shown could end a run for reasons that its conversation does not hold.
    budget = Budget(rounds=exercise.strategy.max_rounds, calls=40) if exercise.strategy.show_budget else None
    return await orchestrator.run(exercise.question, pool=exercise.pool, budget=budget)


def conversation(run: Run) -> list[Said]:
    """The messages of a run; a turn that brought a PARSE_ERR is not learned."""
    messages: list[Message] = []
    for event in run.events:
        if isinstance(event, Asked):
            messages += [message for message in event.messages if message.role != "assistant"]
        elif isinstance(event, Replied):
            messages.append(Message("assistant", event.reply.text))
    following = [*messages[1:], Message("user", "")]
    return [
        (message, message.role == "assistant" and "PARSE_ERR" not in after.text)
        for message, after in zip(messages, following, strict=True)
    ]
