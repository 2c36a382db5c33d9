"""Nobody is there to decide: the run is suspended, its process may end, and it is resumed with the decision."""

import asyncio
import tempfile
from pathlib import Path

import concertino as ct
from concertino.testing import ScriptedModel

PAID: list[float] = []


@ct.tool(approval=lambda arguments: arguments["amount"] > 10)
def pay(amount: float) -> str:
    """Pay an amount."""
    PAID.append(amount)
    return f"paid {amount:g}"


POOL = ct.Pool.of(pay)


async def monday(path: Path) -> None:
    model = ScriptedModel([("pay", {"amount": 5}), ("pay", {"amount": 500})])
    run = await ct.Orchestrator(model).run("Pay the bills.", pool=POOL, trace=path)
    print(run.stop, "-", run.detail, PAID)


async def thursday(path: Path) -> None:
    for call_id, asked in ct.Trace.load(path).pending().items():
        print(call_id, asked["name"], asked["arguments"])
    model = ScriptedModel("<answer>The bills are paid.</answer>")
    decisions = {"1.2": ct.Approve({"amount": 50})}
    run = await ct.Orchestrator(model).resume(path, pool=POOL, decisions=decisions)
    print(run.answer, PAID)


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(monday(Path(folder) / "bills.trace.jsonl"))
    asyncio.run(thursday(Path(folder) / "bills.trace.jsonl"))
