"""A driver for tests, which may be killed: `ray_driver.py PLACE FOLDER COUNT SECONDS` carries out paid runs.

Each result is a line of `FOLDER/results.jsonl`; one that is there is not ordered again.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

from concertino.rollouts import RunOrder, open_rollouts
from rollout_work import PaidRuns


def orders(folder: Path, count: int) -> Iterator[RunOrder]:
    """The runs of a driver."""
    for number in range(count):
        yield RunOrder("Do it.", {"id": f"t{number}"}, folder=str(folder / "traces"))


async def main(place: str, folder: Path, count: int, seconds: float) -> None:
    """Carry out what is left."""
    results = folder / "results.jsonl"
    known = {json.loads(line)["id"] for line in results.read_text().splitlines()} if results.exists() else set()
    left = (order for order in orders(folder, count) if order.id not in known)
    with results.open("a") as file:
        async with (
            open_rollouts(place, PaidRuns(folder / "log", seconds), slots=24) as rollouts,
            aclosing(rollouts.submit(left)) as stream,
        ):
            async for result in stream:
                file.write(json.dumps(result.to_json()) + "\n")
                file.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
