"""A router is fitted to recorded answers, then each baseline answers a question that the router has not seen."""

import asyncio

import concertino as ct
import concertino_replay
from concertino_bench.baselines import Cascade, KnnRouter, MajorityVote, RouterProfile

prices = {"org/small": ct.Prices(0.1, 0.4), "org/large": ct.Prices(2.5, 10.0)}
rows = list(concertino_replay.read("recorded.jsonl").rows())
RouterProfile.fit([row for row in rows if row["id"] != "d"], prices).save("profile.json")


async def main() -> None:
    pool = ct.Pool.load("pool.toml")
    question = next(row["question"] for row in rows if row["id"] == "d")
    for strategy in (
        KnnRouter(profile="profile.json", k=1),
        Cascade(members=("ask_small", "ask_large"), answers="number"),
        MajorityVote(answers="number"),
    ):
        run = await ct.Orchestrator(strategy=strategy).run(question, pool=pool)
        print(f"{strategy.name}: {run.answer} (${run.usage.usd:.6f}; {run.detail})")


asyncio.run(main())
