"""Make an episode of a run, write it down, read it again, and score it with ParaManager's reward."""

import json

import concertino as ct
from concertino.testing import ScriptedModel
from concertino_bench import Grade, Verdict
from concertino_train.episodes import Episode
from concertino_train.rewards import PRESETS


@ct.tool(cost=ct.Cost(units=1))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


policy = ScriptedModel(
    "I would say 7.",
    [("add", {"a": 3, "b": 4}), ("add", {"a": 3, "b": "four"})],
    [("final_answer", {})],
    "<answer>7</answer>",
)
run = ct.Orchestrator(policy).run_sync("What is 3 + 4?", pool=ct.Pool.of(add))
episode = Episode.of_run(run, Grade(Verdict.RIGHT, "7 is right"), group="sum/3+4")

for each in episode.rounds:
    print(each.kind, list(each.issues), [(call.name, call.status, call.units) for call in each.calls])
again = Episode.from_json(json.loads(json.dumps(episode.to_json())))
(scored,) = PRESETS["paramanager"].score([again])
print({name: round(value, 3) for name, value in scored.components.items()}, again == episode)
