"""Votes: several samples at once, and the answer that most of them give.

Samples have seeds of their own (the first has none), so that a server which honours seeds does not give one answer
several times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from concertino import CallFailed, Sampling

from concertino_reasoning import prompts
from concertino_reasoning.prompts import block
from concertino_reasoning.solutions import Solution
from concertino_reasoning.votes import VoteOutcome, count_votes

from .chosen import ChosenModel, Conversation, code_of, conversation, describe_failures, ends_work, failures_of


@dataclass(frozen=True)
class Poll:
    """The samples of a vote, in the order of their numbers, and its outcome."""

    samples: tuple[Solution | CallFailed, ...]
    vote: VoteOutcome

    def chosen(self) -> Solution:
        """The first sample of the winner; without any vote the first sample there is.

        Raises:
            CallFailed: no sample came back.
        """
        solutions = [sample for sample in self.samples if isinstance(sample, Solution)]
        if not solutions:
            raise failures_of(self.samples)[0]
        notes = [self.vote.describe(), describe_failures(self.samples, "samples")]
        if self.vote.winner is not None:
            sample = self.samples[self.vote.winner.samples[0]]
            assert isinstance(sample, Solution)
            return sample.noting(*notes)
        return solutions[0].noting(*notes, "no sample marks an answer, so this is the first one, whole")


async def poll(solver: ChosenModel, requests: Sequence[Conversation], sampling: Sampling) -> Poll:
    """One sample for each request, at once, and the vote over them. As many requests as are given."""
    numbered = [(messages, seeded(sampling, number)) for number, messages in enumerate(requests)]
    samples = await solver.solve_all(numbered)
    return Poll(tuple(samples), vote_of(samples))


def vote_of(samples: Sequence[Solution | CallFailed]) -> VoteOutcome:
    """The vote over the solutions that mark their answer."""
    return count_votes([s.answer if isinstance(s, Solution) and s.marked else None for s in samples])


def seeded(sampling: Sampling, number: int) -> Sampling:
    """The sampling of one of several samples."""
    # With one seed for all, a server that honours it would give one answer several times.
    return replace(sampling, seed=(sampling.seed or 0) + number) if number else sampling


async def ensemble(solver: ChosenModel, task: str, requests: Sequence[Conversation], sampling: Sampling) -> Solution:
    """A vote; where no answer has most votes alone, one more request settles it. One request more than are given."""
    result = await poll(solver, requests, sampling)
    chosen = result.chosen()
    solutions = [sample for sample in result.samples if isinstance(sample, Solution)]
    decided = result.vote.winner is not None and not result.vote.tied
    if decided or len(solutions) < 2 or ends_work(result.samples):
        return chosen
    views = "\n".join(block("solution", one.body, number=str(n)) for n, one in enumerate(solutions, 1))
    settled = await solver.solve(conversation(prompts.AGGREGATE, f"{block('task', task)}\n{views}"), sampling)
    if isinstance(settled, CallFailed):
        return chosen.noting(f"it was not settled: {code_of(settled)} ({settled})")
    return settled.noting(result.vote.describe(decided=False), describe_failures(result.samples, "samples"), _SETTLED)


_SETTLED = "no answer was ahead, so one more request weighed the solutions; its answer is given"
