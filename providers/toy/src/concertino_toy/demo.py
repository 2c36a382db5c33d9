"""The question and the pool of `concertino demo`: four problems, and members that fail on purpose.

Seeded, and chosen so that a run shows each status once and still ends right: the scripted leader misspells one
argument (PARSE_ERR), `steady`'s first request crashes (EXEC_ERR), `sage`'s first request never answers
(TIMEOUT), and `swift` believes the false note of part 1, which only a cross-check reveals.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from concertino import AgentSpec, ModelSpec, ToolSpec

from .leader.scripted import ScriptedLeader
from .problems.writer import make_question
from .published import conductor_spec, leader_spec
from .simulated.agents import solve
from .simulated.models import SAGE, STEADY, SWIFT, model_spec
from .simulated.skills import Pace
from .simulated.tools import calculate, combine, read_problem

__all__ = ["demo_members", "demo_question"]

_SIZES = ((2, 1), (5, 2), (9, 2), (3, 1))
"""Depth and breadth of each part: short for `swift`, middling for `steady`, long for `sage`, short."""


def demo_question(seed: int = 0) -> tuple[str, tuple[int, ...]]:
    """Four independent problems, the first with a false note, and their answers in order."""
    rng = Random(seed)
    texts: list[str] = []
    answers: list[int] = []
    for number, (depth, breadth) in enumerate(_SIZES, start=1):
        text, found = make_question(rng, 1, depth=depth, breadth=breadth, lure=number == 1)
        texts.append(f"Problem {number}: {text}")
        answers += found
    return "\n\n".join(texts), tuple(answers)


def demo_members(seed: int = 0) -> list[ToolSpec | AgentSpec | ModelSpec]:
    """Tools, the solver, three models and the two orchestrators, named as if installed, with the faults built in."""
    skills = {
        "swift": replace(SWIFT, seed=seed, pace=Pace(0.1, 0.0008), steps=60),
        "steady": replace(STEADY, seed=seed, pace=Pace(0.15, 0.001), steps=60, lure_rate=0.0, first_faults=("crash",)),
        "sage": replace(SAGE, seed=seed, pace=Pace(0.2, 0.0012), first_faults=("hang",)),
    }
    members: list[ToolSpec | AgentSpec | ModelSpec] = [
        calculate,
        read_problem,
        combine,
        # Longer than any request that is answered, so that only the one that hangs is cut off.
        solve.with_(timeout=1.2),
        *(model_spec(name, skill) for name, skill in skills.items()),
        leader_spec().with_(factory=lambda: ScriptedLeader(pace=Pace(0.1, 0.0003), slip=True, seed=seed)),
        conductor_spec(),
    ]
    return [member.with_(name=f"toy/{member.name}") for member in members]
