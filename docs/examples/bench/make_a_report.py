"""Run two systems over a few tasks, then read the results as numbers, as a frontier, and as a text."""

import asyncio

import concertino as ct
from concertino_bench import System, installed_graders
from concertino_bench.masbench import task_sets
from concertino_bench.metrics import accuracy, by_system, intervals, usd
from concertino_bench.reports import build, pareto, read_results
from concertino_bench.runner import Evaluation, Selection, evaluate

sets = {each.name: each for each in task_sets()}
tasks = [Selection(sets["masbench/robustness"], {"level": 2, "count": 20, "seed": 1})]
systems = [System(name, "single-model", model=f"toy/{name}") for name in ("swift", "steady", "sage")]
pool = ct.Pool.installed("toy/swift", "toy/steady", "toy/sage")
evaluation = Evaluation(tasks, systems, title="Three models on false notes")
asyncio.run(evaluate(evaluation, pool, "results.jsonl", graders=installed_graders()))

results = read_results("results.jsonl")
for name, items in by_system(results.items).items():
    right, cost = intervals(items, [accuracy, usd])
    print(f"{name}: {right.value:.2f} ({right.low:.2f} to {right.high:.2f}), {cost.value:.6f} $ per run")

for point in pareto(results.items, x="usd", y="accuracy"):
    print(point.system, "on the frontier" if point.frontier else f"beaten by {', '.join(point.beaten_by)}")

report = build(results)
print(report.markdown().splitlines()[0])
