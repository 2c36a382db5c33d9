"""A scripted planner and a scripted programmer walk through a grid; every turn is rewarded, role by role."""

import json

import concertino as ct
from concertino.testing import ScriptedModel
from concertino_bench.environments import Turn, environment_of, oracle_of, tasks, workflow_for, world_of

(task,) = tasks("plan-path", 1, level=6, seed=7)
print(task.question.rpartition("\n\n")[2])
way = list(oracle_of(task)["moves"])


@ct.tool
def python(code: str) -> str:
    """Stands in for the sandbox: always prints the way."""
    return json.dumps(way)


# In the first turn the planner stops halfway; in the second one it continues.
half = len(way) // 2
script = "```python\nprint('a search would stand here')\n```"
model = ScriptedModel(script, f"#### {json.dumps(way[:half])}", script, f"#### {json.dumps(way[half:])}")

world = world_of(task)
workflow = workflow_for("plan-path", turns=4)
run = ct.Orchestrator(model, workflow).run_sync(task.question, pool=ct.Pool.of(python, *world.members()))
print(run.stop, world.state()["reached"], world.state()["rewards"])

environment = environment_of(task)
environment.reset()
for moves in (way[:half], way[half:]):
    turn = Turn(environment.snapshot(), action=moves, printed=json.dumps(way), ran=True)
    reward = environment.turn_reward(turn)
    environment.step(moves)
    for role in ("planner", "programmer"):
        print(f"{role}: alpha {reward.of(role):.2f}, lambda {reward.of(role, 'lambda'):.2f} {reward.scores[role]}")
