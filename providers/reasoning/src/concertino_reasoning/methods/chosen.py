"""The chosen model: one way to choose a model for a call, to ask it once, and to ask it several times at once.

A request that fails is a value here, not an exception, so that a method can continue with the replies it has.

Invariant: as many requests are made as were asked for, at most. One that the budget refused while its siblings had
reserved what was left is made again when they have settled, as long as that brings replies; it spent nothing before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from concertino import CallFailed, Context, ErrorInfo, Message, Observation, PoolError, Reply, Sampling, Status
from concertino.schema import near_names

from concertino_reasoning.solutions import Solution, read_solution

Conversation: TypeAlias = Sequence[Message]

ENDS = frozenset({"budget_exhausted", "deadline", "queue_deadline"})
"""Codes of failures after which there is no use in further rounds."""


@dataclass(frozen=True)
class ChosenModel:
    """A model of the pool, chosen for one call of an agent."""

    context: Context
    name: str

    async def ask(self, messages: Sequence[Message], sampling: Sampling) -> Reply | CallFailed:
        """Ask once; a failure is returned."""
        try:
            return await self.context.model(self.name).chat(messages, sampling=sampling)
        except CallFailed as failed:
            return failed

    async def solve(
        self, messages: Sequence[Message], sampling: Sampling, *, free: bool = False
    ) -> Solution | CallFailed:
        """Ask once for a solution; a reply that holds none is a failure with the code `truncated`."""
        reply = await self.ask(messages, sampling)
        if isinstance(reply, CallFailed):
            return reply
        if (solution := read_solution(reply, free=free)) is not None:
            return solution
        what = "its reply was cut off before an answer" if reply.finish_reason == "length" else "its reply is empty"
        return failure("truncated", f"{what}; repeat the call, or ask another model", self.name, retryable=True)

    async def solve_once(self, messages: Sequence[Message], sampling: Sampling, *, free: bool = False) -> Solution:
        """Ask once for a solution.

        Args:
            free: the answer is a text of its own, in an answer block or whole, and no value to look for.

        Raises:
            CallFailed: there is no solution; says why.
        """
        solution = await self.solve(messages, sampling, free=free)
        if isinstance(solution, CallFailed):
            raise solution
        return solution

    async def solve_all(self, requests: Sequence[tuple[Sequence[Message], Sampling]]) -> list[Solution | CallFailed]:
        """Ask for several solutions at once, in the order of the requests."""
        results: list[Solution | CallFailed] = list(await self.context.gather(self.solve(*r) for r in requests))
        # What a request reserves beyond its use is free again when it has settled, so those refused may fit in now.
        waiting = [i for i, result in enumerate(results) if _refused(result)]
        progress = len(waiting) < len(results)
        # A reply that was cut off shows that the budget is used up, not only reserved.
        while waiting and progress and not any(_cut(result) for result in results):
            again = await self.context.gather(self.solve(*requests[i]) for i in waiting)
            for i, result in zip(waiting, again, strict=True):
                results[i] = result
            still = [i for i in waiting if _refused(results[i])]
            progress, waiting = len(still) < len(waiting), still
        return results


def choose(context: Context, model: str = "", *, role: str = "default") -> ChosenModel:
    """The model that the caller names, or the one of a role; an unbound role has the model of `default`.

    Raises:
        CallFailed: no model of that name, or none for the role; names those there are.
    """
    if not model.strip():
        try:
            return ChosenModel(context, context.model(role).name)
        except PoolError as error:
            refuse("model", f"none for the role {role!r}: {error}")
    known = context.models
    if model not in known:
        names = _shortest(known)
        near = near_names(model, names)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        there_are = ", ".join(names) or "none"
        refuse("model", f"the pool has no {model!r}; {hint}there are {there_are}; or leave it out")
    return ChosenModel(context, known[model])


def _shortest(known: Mapping[str, str]) -> list[str]:
    """Roles and models, each model by its shortest name."""
    full = set(known.values())
    return sorted(name for name in known if name not in full or name.rpartition("/")[2] not in known or "/" not in name)


def task_of(context: Context, given: str, argument: str = "subtask") -> str:
    """What the caller gives in an argument, or the question of the run where it is missing.

    Raises:
        CallFailed: both are empty.
    """
    task = given.strip() or context.question.strip()
    if not task:
        refuse(argument, "left out or empty, and the run has no question; put everything that is needed into it")
    return task


def question_of(context: Context) -> str:
    """The question of the run, for agents that work on nothing else.

    Raises:
        CallFailed: the run has none.
    """
    question = context.question.strip()
    if not question:
        refuse("question", "this agent works on the question of a run, and there is none; give a task to another agent")
    return question


def refuse(argument: str, message: str) -> NoReturn:
    """End the agent's call for a mistake in one of its arguments, with the code `rejected`."""
    raise failure("rejected", message, argument)


def failure(code: str, message: str, who: str, *, retryable: bool = False) -> CallFailed:
    """What ends an agent's call with a code of its own when it is raised."""
    return CallFailed(Observation("", who, Status.EXEC_ERR, None, ErrorInfo(code, message, retryable=retryable)))


def code_of(failed: CallFailed) -> str:
    """The code of a failed request."""
    return failed.observation.error.code if failed.observation.error else ""


def ends_work(results: Iterable[object]) -> bool:
    """Whether one of the results says that budget or time is over."""
    return any(isinstance(result, CallFailed) and code_of(result) in ENDS for result in results)


def failures_of(results: Iterable[object]) -> list[CallFailed]:
    """The failures among results."""
    return [result for result in results if isinstance(result, CallFailed)]


def describe_failures(results: Sequence[object], what: str = "requests") -> str:
    """A sentence about the failures among results, with the cause of the first; empty if there is none."""
    failed = failures_of(results)
    if not failed:
        return ""
    return f"{len(failed)} of {len(results)} {what} failed; the first: {code_of(failed[0])} ({failed[0]})"


class RoundPace:
    """Whether there is time for another step, judged by the longest one so far."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._longest = 0.0
        self._begun = asyncio.get_running_loop().time()

    def step_ended(self) -> None:
        """A step has ended, and the next begins."""
        now = asyncio.get_running_loop().time()
        self._longest, self._begun = max(self._longest, now - self._begun), now

    def has_time_for(self, steps: int) -> bool:
        """Whether so many steps in a row fit in before the deadline."""
        return self._context.remaining_seconds() > steps * self._longest


def _refused(result: object) -> bool:
    return isinstance(result, CallFailed) and code_of(result) == "budget_exhausted"


def _cut(result: object) -> bool:
    return isinstance(result, CallFailed) and code_of(result) == "truncated"


def conversation(system: str, user: str) -> list[Message]:
    """One instruction and one request; an empty instruction is left out."""
    return [*([Message("system", system)] if system else []), Message("user", user)]
