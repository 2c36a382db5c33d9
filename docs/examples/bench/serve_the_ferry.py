"""One task of the included ferry company: its world, a run in it, and its grade."""

import asyncio

import concertino as ct
from concertino.testing import ScriptedModel
from concertino_bench import Submission
from concertino_bench.toolscale import ToolscaleGrader, task_sets

ferry = {each.name: each for each in task_sets()}["toolscale/ferry"]
tasks = {task.id: task for task in ferry.load()}
task = tasks["toolscale/ferry-recover-1"]
print(len(tasks), "tasks;", task.metadata["request"])


async def main() -> None:
    world = ferry.world(task)  # a database of its own, and twenty tools that act on it
    full = {"customer_id": "C09", "sailing_id": "S102", "adults": 4, "pay_by": "credit"}
    model = ScriptedModel(
        [("book", full)],
        [("book", {**full, "sailing_id": "S101"})],
        "<answer>S102 is full. You are booked on S101, B017, for 160 euros.</answer>",
    )
    run = await ct.Orchestrator(model).run(task.question, pool=ct.Pool.of(*world.members()))
    for seen in run.observations:
        print(seen.status, seen.content if not seen.ok else seen.content["booking_id"])
    calls = [{"name": call.name, "arguments": call.arguments} for round_ in run.rounds for call in round_.plan.calls]
    for text in (run.answer, "It is done."):
        grade = await ToolscaleGrader().grade(task, Submission(text, calls, world.state()), services=None)
        print(grade.verdict, dict(grade.values), grade.reason)


asyncio.run(main())
