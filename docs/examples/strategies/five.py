"""The same question under each of the five strategies: what the orchestrator writes first, and what is called."""

import concertino as ct
from concertino.strategies.agent_graph import AgentGraph
from concertino.strategies.dependency_plan import DependencyPlan
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino.strategies.role_workflow import reasoner_programmer
from concertino.strategies.serial_calls import SerialCalls

QUESTION = (
    "Problem 1: The number of each Attic's Chest equals 7. How many Chest does Attic have? "
    "Problem 2: The number of each Barn's Horse equals 4. How many Horse does Barn have?"
)
POOL = ct.Pool.installed("toy/*", "code/python").bind(orchestrator="toy/leader")

for strategy in (ParallelRounds(), AgentGraph(), DependencyPlan(), SerialCalls(), reasoner_programmer()):
    run = ct.Orchestrator(strategy=strategy).run_sync(QUESTION, pool=POOL)
    print(f"{strategy.name}: {run.answer!r}, calls: {len(run.observations)}")
    for turn in run.rounds:
        print(f"  round {turn.number}")
        for call in turn.plan.calls:
            before = turn.plan.before(call.id)
            print(f"    {call.id} {call.name}{' after ' + ', '.join(before) if before else ''}")
