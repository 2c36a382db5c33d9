"""The same run, but the process dies when the second round begins, without any cleanup."""

import os
from typing import Any

import concertino as ct
from toy_pool import QUESTION, pool


def pull_the_plug(event: Any) -> None:
    record = event.to_json()
    if record["t"] == "plan" and record["round"] == 2:
        os._exit(1)


budget = ct.Budget(rounds=8, calls=40, usd=0.50, seconds=30)
ct.Orchestrator().run_sync(QUESTION, pool=pool, budget=budget, trace="interrupted.trace.jsonl", on_event=pull_the_plug)
