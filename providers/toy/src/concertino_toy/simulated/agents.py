"""The solver agent: one subtask, one model, in a context of its own.

It is deliberately plain: the model's text goes back unchanged, with its steps, so that an orchestrator
can compare two replies step by step. Which model works is an argument, as in ParaManager's catalogue of
agents.
"""

from __future__ import annotations

from typing import Literal

from concertino import Context, Cost, Message, agent

INSTRUCTION = (
    "You answer questions about quantities. All arithmetic is modulo 23, and a quantity that no sentence "
    "mentions is 0. Write your steps between <reasoning> and </reasoning>, then each answer in its own "
    "\\boxed{} between <answer> and </answer>."
)


@agent(cost=Cost(units=1), timeout=30, retry_safe=True, models=("swift", "steady", "sage"))
async def solve(subtask: str, model: Literal["swift", "steady", "sage"] = "steady", *, ctx: Context) -> str:
    """Solve one subtask with one model (swift | steady | sage); returns its steps and its answer in \\boxed{}.

    Args:
        subtask: the problem with everything that it needs, in full.
        model: swift (cheap, short problems), steady (in between) or sage (expensive, long problems).
    """
    reply = await ctx.model(model).chat([Message("system", INSTRUCTION), Message("user", subtask)])
    return reply.text
