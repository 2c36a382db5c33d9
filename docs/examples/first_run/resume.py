"""Continue where the process died. Finished calls are read from the trace, not paid for again."""

import asyncio

import concertino as ct
from toy_pool import pool

before = ct.Trace.load("interrupted.trace.jsonl")
print(f"finished: {before.finished}; answered requests: {len(before.replies())}")

run = asyncio.run(ct.Orchestrator().resume("interrupted.trace.jsonl", pool=pool))
for seen in run.observations:
    if seen.replayed:
        print(f"from the trace: {seen.call_id} {seen.name} {seen.status}")
print(run.stop, run.answer.replace("\n", " "))
