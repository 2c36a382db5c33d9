"""Keep the trace of a run, find it again, read it, and replay it under another limit."""

import concertino as ct
from concertino.testing import ScriptedModel


@ct.tool(cost=ct.Cost(units=1))
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


model = ScriptedModel(
    [("add", {"a": 1, "b": 2})],
    [("add", {"a": 3, "b": 4})],
    [("final_answer", {})],
    "<answer>10</answer>",
)
ct.Orchestrator(model).run_sync("1 + 2 + 3 + 4?", pool=ct.Pool.of(add), trace="runs", durability="power")

trace = ct.TraceStore("runs").load("last")
found = trace.summary()
print(f"{found.stop}: {found.answer} after {found.rounds} rounds, {found.calls} calls, {found.units:g} units")
for seen in trace.observations():
    print(seen.call_id, seen.name, seen.status, seen.content)

print("again:", ct.replay(trace).answer)
print("with one round:", ct.replay(trace, ct.ParallelRounds(max_rounds=1)).stop)
