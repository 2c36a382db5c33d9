"""Questions to the policy, gathered into batches by what is ready.

    run 1:  ask ------------------.
    run 2:  calls ... ask --------+--> one batch --> answers
    run 3:  a call that hangs     .        (run 3 is asked in a later batch)

A batch is sampled when all runs that are waited for have asked. A run that keeps the others waiting for longer than
`patience` is late: nobody waits for it again until it has asked. So a call that hangs costs the others that time once.

The invariants: where nothing waits, the batches are those of rounds in which all runs take part, and the rows of a
batch stand in the order of their seats; each question is answered once; and nothing is sampled while the gate is
closed.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from concertino_train.policies import Prompt, Sample

PATIENCE = 0.5
"""Seconds without a new question after which a batch is sampled without the runs that have not asked."""


class Answer(NamedTuple):
    """The policy's answer to one prompt.

    Attributes:
        sample: what was sampled.
        version: of the weights that sampled it.
        seconds: that its batch took.
    """

    sample: Sample
    version: int
    seconds: float


Generate = Callable[[Sequence[Prompt]], Awaitable[list[Answer]]]
"""Answers the rows of a batch."""


class Asks(Protocol):
    """The place of one run among those that ask the policy."""

    async def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """The policy's answers; one question at a time."""

    def leave(self) -> None:
        """Ask no more; nobody waits for this run."""


@dataclass(eq=False)
class _Question:
    prompts: Sequence[Prompt]
    answer: asyncio.Future[list[Answer]]


class Gatherer:
    """Gathers questions into batches, on the event loop on which it is made.

    Args:
        generate: answers a batch.
        patience: seconds without a new question, after which nobody is waited for.
    """

    def __init__(self, generate: Generate, patience: float = PATIENCE) -> None:
        self._generate, self._patience = generate, patience
        self._count = itertools.count()
        self._seated: set[int] = set()
        self._awaited: set[int] = set()
        self._asking: dict[int, _Question] = {}
        self._changed = asyncio.Event()
        self._gate = asyncio.Lock()
        self._shut = False
        self._work: asyncio.Task[None] | None = None

    def enter(self) -> Seat:
        """A seat for a run that will ask; it is waited for."""
        number = next(self._count)
        self._seated.add(number)
        self._awaited.add(number)
        return Seat(self, number)

    def leave(self, number: int) -> None:
        """See `Seat.leave`."""
        self._seated.discard(number)
        self._awaited.discard(number)
        self._changed.set()

    async def ask(self, number: int, prompts: Sequence[Prompt]) -> list[Answer]:
        """See `Seat.ask`."""
        question = self._asking[number] = _Question(prompts, asyncio.get_running_loop().create_future())
        self._awaited.discard(number)
        self._changed.set()
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer(), name="rollouts: sampling")
        try:
            return await question.answer
        finally:
            if self._asking.get(number) is question:
                # The question was withdrawn; its line broke, for example.
                # The run is awaited until it asks again, or is late.
                del self._asking[number]
                self._awaited.update({number} & self._seated)
                self._changed.set()

    async def shut(self) -> None:
        """Sample nothing from now on; returns when the batch under way is done. May be called again."""
        if not self._shut:
            await self._gate.acquire()
            self._shut = True

    def open(self) -> None:
        """Sample again."""
        if self._shut:
            self._shut = False
            self._gate.release()

    # -- batches -------------------------------------------------------------------------------------------------------

    async def _answer(self) -> None:
        """Answer batch after batch, until nobody asks."""
        while self._asking:
            await self._gathered()
            async with self._gate:
                # Read behind the gate: while it was closed, others may have asked.
                seats = sorted(self._asking)
                batch = [self._asking.pop(seat) for seat in seats]
                if batch:
                    await self._answered(batch)
                    # Whoever was answered will ask again, or leave.
                    self._awaited.update(self._seated.intersection(seats))

    async def _gathered(self) -> None:
        """Wait until all have asked that are waited for."""
        while self._awaited:
            self._changed.clear()
            try:
                async with asyncio.timeout(self._patience):
                    await self._changed.wait()
            except TimeoutError:
                # A loop that was busy for long finds time-out and question together, and then the question counts.
                if not self._changed.is_set():
                    self._awaited.clear()

    async def _answered(self, batch: Sequence[_Question]) -> None:
        """Sample a batch, and hand its answers out."""
        rows = [prompt for question in batch for prompt in question.prompts]
        try:
            found = await self._generate(rows)
        except BaseException as error:
            for question in batch:
                if not question.answer.done():
                    question.answer.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        answers = iter(found)
        for question in batch:
            mine = list(itertools.islice(answers, len(question.prompts)))
            if not question.answer.done():
                question.answer.set_result(mine)


@dataclass(frozen=True)
class Seat:
    """The place of one run among those that ask."""

    gatherer: Gatherer
    number: int

    async def ask(self, prompts: Sequence[Prompt]) -> list[Answer]:
        """The policy's answers, sampled together with what other runs ask; one question at a time."""
        return await self.gatherer.ask(self.number, prompts)

    def leave(self) -> None:
        """Ask no more; nobody waits for this run. May be called again."""
        self.gatherer.leave(self.number)
