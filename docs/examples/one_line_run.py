"""Drive the strategy with a scripted model, then by hand."""

import concertino as ct
from concertino.strategies import TaskContext
from concertino.testing import ScriptedModel
from one_line import OneLine


@ct.tool
async def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


with ScriptedModel('CALL multiply {"a": 6}', 'CALL multiply {"a": 6, "b": 7}', "ANSWER 42") as model:
    run = ct.Orchestrator(model, OneLine()).run_sync("6 × 7?", pool=ct.Pool.of(multiply))
print(run.answer, [seen.status.value for seen in run.observations])
print("replayed:", ct.replay(run.trace, OneLine()).answer)

machine = OneLine().begin(TaskContext("6 × 7?"))
machine.on_reply(ct.Reply('CALL multiply {"a": 6, "b": 7}'))
fork = machine.fork()
fork.observe([ct.Observation("1.1", "multiply", ct.Status.OK, 42)])
print(type(machine.step()).__name__, type(fork.step()).__name__)
print("written down and read again:", OneLine().restore(fork.dump()).dump() == fork.dump())
