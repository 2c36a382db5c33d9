"""The trained model leads its pool."""

import json
from pathlib import Path

import concertino as ct
import concertino_local
from concertino.strategies import strategy_by_name
from shop import pool

folder = Path("shop-orchestrator")
told = json.loads((folder / "strategy.json").read_text(encoding="utf-8"))
strategy = strategy_by_name(told["name"]).from_json(told)
leader = ct.Orchestrator(
    concertino_local.model("shop", path=str(folder)), strategy, sampling=ct.Sampling(temperature=0)
)

run = leader.run_sync("How many pieces of broom are there?", pool=pool())
print([f"{seen.name}: {seen.status} {seen.content}" for seen in run.observations])
print(run.answer)
