"""A driver for tests, which may be killed: `ray_driver.py PLACE FOLDER COUNT SECONDS JOURNALS` carries out paid runs.

Each result is a line of `FOLDER/results.jsonl`; one that is there is not ordered again.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

from concertino.rollouts import RunOrder
from concertino_ray import Cluster, RayRuns
from concertino_ray.ray_runs import Journals
from rollout_work import PaidRuns


def orders(folder: Path, count: int) -> Iterator[RunOrder]:
    """The runs of a driver."""
    for number in range(count):
        yield RunOrder("Do it.", {"id": f"t{number}"}, folder=str(folder / "traces"))


async def main(place: str, folder: Path, count: int, seconds: float, journals: Journals) -> None:
    """Carry out what is left."""
    results = folder / "results.jsonl"
    known = {json.loads(line)["id"] for line in results.read_text().splitlines()} if results.exists() else set()
    left = (order for order in orders(folder, count) if order.id not in known)
    with results.open("a") as file:
        async with (
            RayRuns(PaidRuns(folder / "log", seconds), Cluster.of(place), slots=24, journals=journals) as rollouts,
            aclosing(rollouts.submit(left)) as stream,
        ):
            async for result in stream:
                file.write(json.dumps(result.to_json()) + "\n")
                file.flush()


if __name__ == "__main__":
    how: Journals = "streamed" if sys.argv[5] == "streamed" else "shared"
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), how))
