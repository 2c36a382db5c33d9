"""Debate: several roles solve a task, see each other's solutions and revise theirs; a moderator decides."""

from __future__ import annotations

from collections.abc import Sequence

from concertino import CallFailed, Message, Sampling

from concertino_reasoning import prompts
from concertino_reasoning.prompts import block
from concertino_reasoning.solutions import Solution

from .chosen import ChosenModel, RoundPace, code_of, conversation, ends_work, failures_of
from .voting import Poll, seeded, vote_of


async def hold_debate(
    solver: ChosenModel, moderator: ChosenModel, task: str, roles: Sequence[str], rounds: int, sampling: Sampling
) -> Solution:
    """Roles solve the task, then see each other's last solutions, round after round; a moderator decides.

    A role that gives nothing in a round keeps its last solution. The round in which budget or time ends is the last.
    At most `len(roles) * rounds + 1` requests; a round's are made at once.
    """
    pace, views = RoundPace(solver.context), dict[int, Solution]()
    held, failed = 0, list[CallFailed]()
    for number in range(rounds):
        if number and not pace.has_time_for(2):  # this round, and the moderator
            break
        requests = [(_turn(task, roles, at, views), seeded(sampling, at)) for at in range(len(roles))]
        replies = await solver.solve_all(requests)
        views.update({at: reply for at, reply in enumerate(replies) if isinstance(reply, Solution)})
        failed += failures_of(replies)
        held += len(failures_of(replies)) < len(replies)
        pace.step_ended()
        if not views or ends_work(replies):
            break
    if not views:
        raise failed[0]
    lost = f"{len(failed)} turns failed; the first: {code_of(failed[0])} ({failed[0]})" if failed else ""
    notes = [_held(held, rounds, roles, views), lost]
    shown = "\n".join(block("solution", views[at].body, role=roles[at]) for at in sorted(views))
    decided = await moderator.solve(conversation(prompts.MODERATOR, f"{block('task', task)}\n{shown}"), sampling)
    if isinstance(decided, Solution):
        return decided.noting(*notes)
    standing = tuple(views[at] for at in sorted(views))
    last = Poll(standing, vote_of(standing)).chosen()
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
