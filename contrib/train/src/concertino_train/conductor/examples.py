"""Rows to learn from: runs of the scripted leader over casts, as tokens with the turns to learn marked.

The invariant: a token is learned exactly if the leader wrote it, the end of its turn included, in a turn that was not
malformed; a malformed turn stays in the row as what came before its repair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from concertino import Budget, Executor, Message, Orchestrator, Run
from concertino.core.events import Asked, Replied
from numpy.typing import NDArray

from .casts import Cast, Writer, draw_cast
from .leader import Leader
from .wording import problem_writer

FAULT_RATES = (0.0, 0.1, 0.3, 0.5)
"""Shares of failing calls, in turn."""
Said = tuple[Message, bool]
"""A message, and whether it is learned."""


@dataclass(frozen=True, eq=False)
class Row:
    """One conversation as tokens.

    Attributes:
        ids: of all messages, in ChatML; shape (tokens,).
        learned: for each, whether it is learned; shape (tokens,).
    """

    ids: NDArray[np.int32]
    learned: NDArray[np.bool_]


def mixed_writer(rng: Random) -> Writer:
    """Who writes the problems of a cast: in some of them MASBENCH, so that its words and lengths are no strangers."""
    return _masbench_text if rng.random() < 0.2 else problem_writer(rng)


def _masbench_text(rng: Random) -> str:
    from concertino_bench.masbench import make_task

    level = rng.choice((2, 2, 3, 4, 6, 8))
    task = make_task("depth", level, rng.randrange(10_000), split="train", rules=False)
    return task.question.partition("\n\n")[0]


def collect(
    numbers: Iterable[int],
    *,
    seed: int = 0,
    slips: float = 0.06,
    texts: Callable[[Random], Writer] = problem_writer,
) -> list[list[Said]]:
    """Run the leader over casts, really, by the executor.

    Args:
        numbers: of the casts.
        seed: of the casts.
        slips: share of rounds with a malformed call.
        texts: chooses, for each cast, who writes its problems.
    """

    async def run_all() -> list[list[Said]]:
        found: list[list[Said]] = []
        async with Executor() as executor:
            for number in numbers:
                rate = FAULT_RATES[number % len(FAULT_RATES)]
                cast = draw_cast(number, seed=seed, fault_rate=rate, texts=texts)
                leader = Leader(cast.choices, slips=slips, seed=(seed, number))
                found.append(conversation(await _lead(cast, leader, executor)))
        return found

    return asyncio.run(run_all())


async def _lead(cast: Cast, leader: Leader, executor: Executor) -> Run:
    orchestrator = Orchestrator(leader, cast.strategy, executor=executor)
    budget = Budget(rounds=cast.strategy.max_rounds, calls=40) if cast.strategy.show_budget else None
    return await orchestrator.run(cast.question, pool=cast.pool, budget=budget)


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


def to_row(said: Sequence[Said], tokenizer: Any) -> Row:
    """A conversation as tokens: ChatML, as the template of `concertino_train.tiny` writes it."""
    backend = tokenizer.backend_tokenizer
    start, end = tokenizer.convert_tokens_to_ids("<|im_start|>"), tokenizer.eos_token_id
    ids: list[int] = []
    learned: list[bool] = []

    def add(tokens: Sequence[int], learn: bool) -> None:
        ids.extend(tokens)
        learned.extend([learn] * len(tokens))

    def encode(text: str) -> list[int]:
        return list(backend.encode(text, add_special_tokens=False).ids)

    for message, learn in said:
        add([start, *encode(f"{message.role}\n")], False)
        add([*encode(message.text), end], learn)
        add(encode("\n"), False)
    return Row(np.asarray(ids, np.int32), np.asarray(learned, np.bool_))
