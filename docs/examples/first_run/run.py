"""Ask the question, inside a budget, and look at the observations."""

import concertino as ct
from toy_pool import QUESTION, pool

budget = ct.Budget(rounds=8, calls=40, usd=0.50, seconds=30)
run = ct.Orchestrator().run_sync(QUESTION, pool=pool, budget=budget, trace="runs")

for round_ in run.rounds:
    for seen in round_.observations:
        why = f"  {seen.error.code}: {seen.error.message.splitlines()[0][:60]}" if seen.error else ""
        print(f"round {round_.number}  {seen.name:<16} {seen.status:<9}{why}")
print(run.stop, run.answer.replace("\n", " "))
print(f"{run.usage.calls} calls, {run.usage.units:g} units, ${run.usage.usd:.4f}")
