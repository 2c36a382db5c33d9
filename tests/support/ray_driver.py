"""A driver for tests, which may be killed: `ray_driver.py PLACE FOLDER COUNT SECONDS JOURNALS` carries out paid runs.

Each result is a line of `FOLDER/results.jsonl`; one that is there is not ordered again. Behind COUNT runs it orders
more, until the file `FOLDER/enough` is there. `FOLDER/health.json` says how many runs each node has under way;
`FOLDER/lost` has a line, the time, for each worker that was found dead with runs under way.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from itertools import count, takewhile
from pathlib import Path

from concertino.core.logs import logger_of
from concertino.rollouts import RunOrder
from concertino_ray import Cluster, RayRuns
from concertino_ray.ray_runs import Journals
from rollout_work import PaidRuns

SLOTS = 24


def orders(folder: Path, numbers: Iterable[int]) -> Iterator[RunOrder]:
    """The runs of a driver."""
    return (RunOrder("Do it.", {"id": f"t{number}"}, folder=str(folder / "traces")) for number in numbers)


async def main(place: str, folder: Path, least: int, seconds: float, journals: Journals) -> None:
    """Carry out what is left."""
    results = folder / "results.jsonl"
    known = {json.loads(line)["id"] for line in results.read_text().splitlines()} if results.exists() else set()
    numbers = takewhile(lambda number: number < least or not (folder / "enough").exists(), count())
    left = (order for order in orders(folder, numbers) if order.id not in known)
    with results.open("a") as file:
        async with (
            RayRuns(PaidRuns(folder / "log", seconds), Cluster.of(place), slots=SLOTS, journals=journals) as rollouts,
            aclosing(rollouts.submit(left)) as stream,
        ):
            telling = asyncio.create_task(tell(rollouts, folder / "health.json"))
            async for result in stream:
                file.write(json.dumps(result.to_json()) + "\n")
                file.flush()
            telling.cancel()


async def tell(rollouts: RayRuns, file: Path) -> None:
    """Write how many runs each node has, again and again."""
    while True:
        new = file.with_suffix(".new")
        new.write_text(json.dumps({node.node: node.running for node in rollouts.health()}))
        new.replace(file)
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    how: Journals = "streamed" if sys.argv[5] == "streamed" else "shared"
    lost = logging.FileHandler(Path(sys.argv[2]) / "lost")
    lost.addFilter(lambda record: record.msg.startswith("a worker is gone"))
    lost.setFormatter(logging.Formatter("%(created)f"))
    logger_of("ray").addHandler(lost)
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), how))
