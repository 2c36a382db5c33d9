"""The same run, but the process dies after the twelfth result, as if somebody pulled the plug."""

import os
from typing import Any

import concertino as ct
from cast import QUESTION, pool

results = 0


def pull_the_plug(event: Any) -> None:
    global results
    if event.to_json()["t"] == "result":
        results += 1
        if results == 12:
            os._exit(1)


budget = ct.Budget(rounds=8, calls=40, usd=0.50, seconds=30)
ct.Orchestrator().run_sync(
    QUESTION, pool=pool, budget=budget, trace="interrupted.trace.jsonl", on_event=pull_the_plug
)
