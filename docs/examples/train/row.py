"""From four rollouts of one question to the rows of a training batch."""

from concertino import Pool, tool
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino_bench import Task
from concertino_train.policies import Prompt, ScriptedPolicy
from concertino_train.rewards import Reward
from concertino_train.rollouts import Assignment, Batch, RolloutEngine, TokenLimits, score_rollouts


@tool
def toll(place: str) -> int:
    """The toll of a place."""
    return {"Mora": 14}[place]


def script(context: str, prompt: Prompt) -> str:
    """In place of a model: it asks, ends, and answers; every second rollout answers wrong."""
    turn = context.count("<|begin|>assistant")
    if turn == 1:
        place = "Mora" if prompt.seed % 3 else "Mola"
        call = f'{{"name": "toll", "arguments": {{"place": "{place}"}}}}'
        return f"<reasoning>ask</reasoning>\n<tool_call>{call}</tool_call>"
    if turn == 2:
        return '<reasoning>end</reasoning>\n<tool_call>{"name": "final_answer", "arguments": {}}</tool_call>'
    return f"<answer>{14 if 'OK 14' in context else 'unknown'}</answer>"


task = Task("tolls/1", "What is the toll of Mora?", ("14",), "text")
assignment = Assignment(task, Pool.of(toll), ParallelRounds(prompt="brief"))
engine = RolloutEngine(ScriptedPolicy(script), limits=TokenLimits(turn=200, total=800))
rollouts = engine.run_sync([assignment], group_size=4, seed=2)
engine.close()

reward = Reward.from_json({"terms": {"correct": {"term": "shared/correct"}}})
batch = Batch.of(rollouts, score_rollouts(rollouts, reward), size=4)

row = batch.rows[0]
print("prompt", len(row.prompt), "completion", len(row.completion), "trained", row.trained, "turns", row.turns)
runs, last = [], None
for mask in row.mask:
    if mask != last:
        runs.append([mask, 0])
    runs[-1][1] += 1
    last = mask
print("mask", " ".join(f"{mask}x{length}" for mask, length in runs))
print("rewards", batch.rewards.tolist())
print("credit", batch.credit.round(2).tolist())
print("groups", {str(row.key) for row in batch.rows}, "prompts", len({row.digest for row in batch.rows}))
