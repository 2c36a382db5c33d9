"""The same system and tasks with two pools of simulated models: two results files, then one comparison."""

import asyncio

import concertino as ct
from concertino_bench import System, installed_graders
from concertino_bench.masbench import task_sets
from concertino_bench.metrics import accuracy, compare, seconds, usd
from concertino_bench.reports import read_all
from concertino_bench.runner import Evaluation, Selection, evaluate

sets = {each.name: each for each in task_sets()}
tasks = [Selection(sets["masbench/robustness"], {"level": level, "count": 15, "seed": 1}) for level in (2, 4)]
system = System("ask-once", strategy="single-model", model="leader")


async def main() -> None:
    for file, model in (("steady.jsonl", "toy/steady"), ("sage.jsonl", "toy/sage")):
        pool = ct.Pool.installed(model).bind(leader=model)
        await evaluate(Evaluation(tasks, [system]), pool, file, graders=installed_graders(), traces=None)


asyncio.run(main())
results = read_all(["steady.jsonl", "sage.jsonl"])
print(results.systems)
found = compare(results.items, *results.systems, [accuracy, usd, seconds])
gap = found["accuracy"]
print(f"{found.tasks} tasks: {gap.a:.3f} and {gap.b:.3f}, difference {gap.low:.3f} to {gap.high:.3f}")
print(f"only one right: {found.mcnemar.only_a} and {found.mcnemar.only_b}, p = {found.mcnemar.p:.4f}")
print(f"money: {found['usd'].ratio:.2f} times as much")
