"""Every baseline that fits a pool of two recorded models, on the six questions that they were recorded on."""

import asyncio

import concertino as ct
import concertino_replay
from concertino_bench import Task, Verdict
from concertino_bench.baselines import RouterProfile, systems
from concertino_bench.graders import Numeric

recording = concertino_replay.read(concertino_replay.EXAMPLE)
tasks = [Task(q.id, q.text, (q.gold,), "number") for q in recording.questions.values()]
pool = ct.Pool(concertino_replay.models(concertino_replay.EXAMPLE))
profile = RouterProfile.fit(recording.rows())  # of the very questions that follow, so it has seen the answers
names = ["single-model", "majority-vote", "cascade", "knn-router"]


async def main() -> None:
    for system in systems(pool, names, answers="number", profile=profile, allow_seen=True):
        leader, right, usd = ct.Orchestrator(system.model, system.strategy), 0, 0.0
        for task in tasks:
            run = await leader.run(task.question, pool=system.pool(pool))
            right += Numeric().judge(task, run.answer or "").verdict is Verdict.RIGHT
            usd += run.usage.usd
        print(f"{system.name:<28}{right} of {len(tasks)}  ${usd:.6f}")


asyncio.run(main())
