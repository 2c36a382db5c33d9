"""Methods: how one or several requests become a solution. An agent is a method with its parameters.

Every method takes what it has when budget or time is over, and says so in the notes; with no solution at all it
ends with the cause of its first failure. Samples have seeds of their own (the first has none), so that a server which
honours seeds does not give one answer several times.

Invariant: the number of requests is bounded beforehand, and each method says by what.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from concertino import CallFailed, Message, Sampling

from . import prompts
from .asking import Asker, Pace, code_of, describe_failures, ends_work, failures_of
from .prompts import block
from .solutions import Solution
from .votes import Vote, count_votes

Conversation: TypeAlias = Sequence[Message]

_VERDICT = re.compile(r"<verdict>\s*(\w+)", re.IGNORECASE)
_FEEDBACK = re.compile(r"<feedback>(.*?)(?:</feedback>|<verdict>|\Z)", re.DOTALL)


def conversation(system: str, user: str) -> list[Message]:
    """One instruction and one request; an empty instruction is left out."""
    return [*([Message("system", system)] if system else []), Message("user", user)]


async def solve_once(asker: Asker, messages: Conversation, sampling: Sampling, *, free: bool = False) -> Solution:
    """One request.

    Args:
        free: the answer is a text of its own, in an answer block or whole, and no value to look for.

    Raises:
        CallFailed: there is no solution; says why.
    """
    solution = await asker.solve(messages, sampling, free=free)
    if isinstance(solution, CallFailed):
        raise solution
    return solution


# -- votes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Poll:
    """The samples of a vote, in the order of their numbers, and its outcome."""

    samples: tuple[Solution | CallFailed, ...]
    vote: Vote

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


async def poll(asker: Asker, requests: Sequence[Conversation], sampling: Sampling) -> Poll:
    """One sample for each request, at once, and the vote over them. As many requests as are given."""
    numbered = [(messages, _seeded(sampling, number)) for number, messages in enumerate(requests)]
    samples = await asker.solve_all(numbered)
    return Poll(tuple(samples), _vote(samples))


def _vote(samples: Sequence[Solution | CallFailed]) -> Vote:
    return count_votes([s.answer if isinstance(s, Solution) and s.marked else None for s in samples])


def _seeded(sampling: Sampling, number: int) -> Sampling:
    return replace(sampling, seed=(sampling.seed or 0) + number) if number else sampling


async def ensemble(asker: Asker, task: str, requests: Sequence[Conversation], sampling: Sampling) -> Solution:
    """A vote; where no answer has most votes alone, one more request settles it. One request more than are given."""
    result = await poll(asker, requests, sampling)
    chosen = result.chosen()
    solutions = [sample for sample in result.samples if isinstance(sample, Solution)]
    decided = result.vote.winner is not None and not result.vote.tied
    if decided or len(solutions) < 2 or ends_work(result.samples):
        return chosen
    views = "\n".join(block("solution", one.body, number=str(n)) for n, one in enumerate(solutions, 1))
    settled = await asker.solve(conversation(prompts.AGGREGATE, f"{block('task', task)}\n{views}"), sampling)
    if isinstance(settled, CallFailed):
        return chosen.noting(f"nobody settled it: {code_of(settled)} ({settled})")
    return settled.noting(result.vote.describe(decided=False), describe_failures(result.samples, "samples"), _SETTLED)


_SETTLED = "no answer was ahead, so one more request weighed the solutions; its answer is given"


# -- debate ------------------------------------------------------------------------------------------------------------


async def hold_debate(
    asker: Asker, moderator: Asker, task: str, roles: Sequence[str], rounds: int, sampling: Sampling
) -> Solution:
    """Roles solve the task, then see each other's last solutions, round after round; a moderator decides.

    A role that gives nothing in a round keeps its last solution. The round in which budget or time ends is the last.
    At most `len(roles) * rounds + 1` requests; a round's are made at once.
    """
    pace, views = Pace(asker.context), dict[int, Solution]()
    held, failed = 0, list[CallFailed]()
    for number in range(rounds):
        if number and not pace.has_time_for(2):
            break
        requests = [(_turn(task, roles, at, views), _seeded(sampling, at)) for at in range(len(roles))]
        replies = await asker.solve_all(requests)
        views.update({at: reply for at, reply in enumerate(replies) if isinstance(reply, Solution)})
        failed += failures_of(replies)
        held += len(failures_of(replies)) < len(replies)
        pace.step_ended()
        if not views or ends_work(replies):
            break
    if not views:
        raise failed[0]
    notes = [_held(held, rounds, roles, views), _lost(failed)]
    shown = "\n".join(block("solution", views[at].body, role=roles[at]) for at in sorted(views))
    decided = await moderator.solve(conversation(prompts.MODERATOR, f"{block('task', task)}\n{shown}"), sampling)
    if isinstance(decided, Solution):
        return decided.noting(*notes)
    standing = tuple(views[at] for at in sorted(views))
    last = Poll(standing, _vote(standing)).chosen()
    return last.noting(*notes, f"no moderator ({code_of(decided)}): the last solutions were counted instead")


def _turn(task: str, roles: Sequence[str], at: int, views: dict[int, Solution]) -> list[Message]:
    """What one role is asked in a round: the task alone at first, then with its own and the others' last solutions."""
    others = [other for other in views if other != at]
    turn = prompts.DEBATE_NEXT if views else prompts.DEBATE_FIRST
    system = f"{prompts.DEBATER} {turn} {prompts.FORMAT}"
    parts = [block("role", roles[at]), block("task", task)]
    parts += [block("own_solution", views[at].body)] if at in views else []
    parts += [block("other_solution", views[other].body, role=roles[other]) for other in sorted(others)]
    return conversation(system, "\n".join(parts))


def _held(held: int, rounds: int, roles: Sequence[str], views: dict[int, Solution]) -> str:
    last = "; ".join(f"{roles[at]}: {' '.join(views[at].answer.split())[:60]}" for at in sorted(views))
    return f"{held} of {rounds} rounds with {len(roles)} roles; at the end {last}"


def _lost(failed: Sequence[CallFailed]) -> str:
    return f"{len(failed)} turns failed; the first: {code_of(failed[0])} ({failed[0]})" if failed else ""


# -- reflexion ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loop:
    """The texts of a critic loop, so that others than the built-in ones can be used."""

    first: Conversation
    critic: str = prompts.CRITIC
    revise: str = prompts.REVISE


async def reflect(asker: Asker, critic: Asker, task: str, loop: Loop, rounds: int, sampling: Sampling) -> Solution:
    """Solve, then let a critic check and solve anew, until the critic is certain, at most `rounds` times.

    The last attempt that came back stands. At most `1 + 2 * rounds` requests, one after another.
    """
    pace = Pace(asker.context)
    attempts = [await solve_once(asker, loop.first, sampling)]
    feedbacks: list[str] = []
    pace.step_ended()
    for _ in range(rounds):
        if not pace.has_time_for(2):
            return attempts[-1].noting(_stopped(attempts, "there is no time for another"))
        checked = await critic.ask(conversation(loop.critic, _to_check(task, attempts[-1])), sampling)
        pace.step_ended()
        if isinstance(checked, CallFailed):
            return attempts[-1].noting(_stopped(attempts, f"no critic ({code_of(checked)})"))
        certain, feedback = read_verdict(checked.text)
        if certain:
            return attempts[-1].noting(f"the critic is certain of attempt {len(attempts)} of at most {rounds + 1}")
        feedbacks.append(feedback)
        revised = await asker.solve(conversation(loop.revise, _history(task, attempts, feedbacks)), sampling)
        pace.step_ended()
        if isinstance(revised, CallFailed):
            return attempts[-1].noting(_stopped(attempts, f"no other came ({code_of(revised)})"))
        attempts.append(revised)
    return attempts[-1].noting(_stopped(attempts, "the critic was never certain"))


def read_verdict(text: str) -> tuple[bool, str]:
    """Whether a critic is certain that the answer is right, and its feedback. Only the last verdict counts."""
    verdicts = _VERDICT.findall(text)
    said = _FEEDBACK.search(text)
    feedback = (said[1] if said else _VERDICT.sub("", text).replace("</verdict>", "")).strip()
    return bool(verdicts) and verdicts[-1].lower() == "correct", feedback or "(no feedback)"


def _to_check(task: str, attempt: Solution) -> str:
    return f"{block('task', task)}\n{block('solution', attempt.body)}"


def _history(task: str, attempts: Sequence[Solution], feedbacks: Sequence[str]) -> str:
    pairs = zip(attempts, feedbacks, strict=True)
    return "\n".join(
        [
            block("task", task),
            *(
                f"{block('attempt', attempt.body, number=str(n))}\n{block('feedback', feedback, number=str(n))}"
                for n, (attempt, feedback) in enumerate(pairs, 1)
            ),
        ]
    )


def _stopped(attempts: Sequence[Solution], why: str) -> str:
    return f"attempt {len(attempts)} stands, not approved: {why}"
