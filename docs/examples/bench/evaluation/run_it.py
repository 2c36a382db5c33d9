"""Run the evaluation of a file from Python, and print how often each system was right."""

import asyncio
import tempfile
from pathlib import Path

import concertino as ct
from concertino_bench import installed_graders, installed_task_sets
from concertino_bench.runner import evaluate, load_evaluation

loaded = load_evaluation(Path(__file__).with_name("evaluation.toml"), installed_task_sets())
pool = ct.Pool.load(loaded.pool)

with tempfile.TemporaryDirectory() as folder:
    out = Path(folder) / "results.jsonl"
    outcome = asyncio.run(evaluate(loaded.evaluation, pool, out, graders=installed_graders()))

for system in loaded.evaluation.systems:
    items = [item for item in outcome.items if item.key.system == system.name]
    print(f"{system.name}: {sum(item.right for item in items)} of {len(items)}")
