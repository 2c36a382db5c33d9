"""One agent against many: on which of the five axes, and from which level on, several agents are worth their price.

The design is that of MAS-Orchestra's MASBENCH study: questions whose dependency graph grows along one axis at a time, a
single agent system (SAS) that answers alone, and multi-agent systems (MAS) whose leader hands parts to others. The
invariant: all that the first MAS can hand parts to are copies of the SAS's model, so what it can work out is what that
model can; the second may use the whole pool. Both are led by the pool's orchestrator, which need not be that model: the
study says what a division of work by this leader brings, not what one model brings by leading itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from concertino import Pool, UsageError
from concertino.strategies.agent_graph import AgentGraph

from concertino_bench.baselines.single import SingleModel
from concertino_bench.masbench.generator import AXES, LEVELS, task_sets
from concertino_bench.runner.evaluation import Evaluation, Selection
from concertino_bench.tasks.system import System

STUDY_LEVELS = (2, 4, 6, 8, 10, 12)
"""The levels of the published set."""


def sas_mas(
    pool: Pool, alone: str, *, count: int = 20, levels: Sequence[int] = STUDY_LEVELS, samples: int = 1, seed: int = 0
) -> Evaluation:
    """The study for a pool whose role `orchestrator` leads the MAS.

    Args:
        pool: with at least one agent or model beside the leader.
        alone: the model of the SAS: a role or a name of the pool.
        count: questions of each axis and level.
        levels: 2 to 12.
        samples: how often each system gets each question.
        seed: of the questions.

    Raises:
        PoolError: the pool has no such model, or no orchestrator.
        UsageError: a level or a count cannot be.
    """
    wrong = [level for level in levels if level not in LEVELS]
    if wrong or not levels or count < 1:
        raise UsageError(
            f"levels={list(levels)}, count={count}: expected levels {LEVELS[0]} to {LEVELS[-1]}, count >= 1"
        )
    single, leader = pool.model(alone).name, pool.model("orchestrator").name
    # The leader is left as it is: the study compares divisions of work under one leader.
    others = [spec.name for spec in pool.models if spec.name not in (single, leader)]
    sets = {each.name: each for each in task_sets()}
    selections = [
        Selection(sets[f"masbench/{axis}"], {"level": level, "seed": seed}, limit=count)
        for axis in AXES
        for level in levels
    ]
    systems = [
        System("SAS", SingleModel(), single, summary=f"{single} alone"),
        System(
            "MAS, same model",
            AgentGraph(),
            copies=single,
            summary=f"{leader} leads copies of {single}",
        ),
    ]
    if others:
        systems.append(System("MAS, whole pool", AgentGraph(), summary=f"{leader} leads the whole pool"))
    return Evaluation(selections, systems, samples=samples, title="One agent against many")
