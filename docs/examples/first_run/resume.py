"""Go on where the process died. What was finished is read from the trace, not paid for again."""

import asyncio

import concertino as ct
from cast import pool

before = ct.Trace.load("interrupted.trace.jsonl")
print(f"found: {len(before.observations())} results, finished: {before.finished}, in doubt: {len(before.in_doubt())}")

run = asyncio.run(ct.Orchestrator().resume("interrupted.trace.jsonl", pool=pool))
replayed = sum(seen.replayed for seen in run.all_observations)
print(run.stop, run.answer.replace("\n", " "))
print(f"{replayed} of {len(run.all_observations)} results came from the trace")
