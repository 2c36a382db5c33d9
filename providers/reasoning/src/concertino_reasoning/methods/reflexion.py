"""Reflexion: solve, let a critic check, and solve again until the critic is certain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from concertino import CallFailed, Sampling

from concertino_reasoning import prompts
from concertino_reasoning.prompts import block
from concertino_reasoning.solutions import Solution

from .chosen import ChosenModel, Conversation, RoundPace, code_of, conversation

_VERDICT = re.compile(r"<verdict>\s*(\w+)", re.IGNORECASE)
_FEEDBACK = re.compile(r"<feedback>(.*?)(?:</feedback>|<verdict>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class CriticLoop:
    """The texts of a critic loop, so that others than the built-in ones can be used."""

    first: Conversation
    critic: str = prompts.CRITIC
    revise: str = prompts.REVISE


async def reflect(
    solver: ChosenModel, critic: ChosenModel, task: str, loop: CriticLoop, rounds: int, sampling: Sampling
) -> Solution:
    """Solve, then let a critic check and solve again, until the critic is certain, at most `rounds` times.

    The last attempt that came back stands. At most `1 + 2 * rounds` requests, one after another.
    """
    pace = RoundPace(solver.context)
    attempts = [await solver.solve_once(loop.first, sampling)]
    feedbacks: list[str] = []
    pace.step_ended()
    for _ in range(rounds):
        if not pace.has_time_for(2):  # a check is useless without time to act on it
            return attempts[-1].noting(_stopped(attempts, "there is no time for another"))
        to_check = f"{block('task', task)}\n{block('solution', attempts[-1].body)}"
        checked = await critic.ask(conversation(loop.critic, to_check), sampling)
        pace.step_ended()
        if isinstance(checked, CallFailed):
            return attempts[-1].noting(_stopped(attempts, f"no critic ({code_of(checked)})"))
        certain, feedback = read_verdict(checked.text)
        if certain:
            return attempts[-1].noting(f"the critic is certain of attempt {len(attempts)} of at most {rounds + 1}")
        feedbacks.append(feedback)
        revised = await solver.solve(conversation(loop.revise, _history(task, attempts, feedbacks)), sampling)
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
