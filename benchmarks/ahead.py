"""S27: how long a trainer waits for rollouts, with a slow tail of calls: synchronous beside asynchronous.

    python benchmarks/ahead.py [--json] [--quick]

The runs are real, and the policy follows a script. One call in sixteen takes 1 s, all others 0.02 s, and an update
takes 0.3 s. The figure is the seconds that a step waits for its groups, on average. The floor of a row is the
synchronous loop in the same process, and the bar is half of it from a staleness of 2 on.
"""

from __future__ import annotations

import asyncio
import sys
import time
import zlib
from collections.abc import Sequence

from concertino import Pool, tool
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino_bench import Task
from concertino_train.policies import Prompt, Sample, ScriptedPolicy
from concertino_train.rollouts import Assignment, RolloutEngine, TokenLimits
from concertino_train.rollouts.group_stream import GroupStream, StreamSettings
from measure import Row, script

GROUPS, SIZE, CALLS = 4, 4, 3
SLOW, QUICK, UPDATE, SAMPLING = 1.0, 0.02, 0.3, 0.02
"""Seconds: of a slow and of another call, of an update, of a batch."""


def _said(context: str, prompt: Prompt) -> str:
    turn = context.count("<|begin|>assistant")
    if turn > CALLS:
        return "<answer>8</answer>"
    call = f'{{"name": "look", "arguments": {{"place": "{prompt.seed % 10_000} {turn}"}}}}'
    return f"<reasoning>r</reasoning>\n<tool_call>{call}</tool_call>"


class _Policy(ScriptedPolicy):
    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        time.sleep(SAMPLING)
        return super().generate(prompts)


@tool
async def look(place: str) -> str:
    """Look somewhere; one place in sixteen is far."""
    await asyncio.sleep(SLOW if zlib.crc32(place.encode()) % 16 == 0 else QUICK)
    return place


def _waited(staleness: int, steps: int) -> float:
    """Seconds that a step waits for its groups, on average."""
    engine = RolloutEngine(_Policy(_said), limits=TokenLimits(turn=2000, total=20_000), patience=0.05)
    pool, strategy = Pool.of(look), ParallelRounds()
    begun = iter(range(10**6))

    def assignment(number: int) -> Assignment:
        return Assignment(Task(f"q{number}", f"q{number}?", ("8",), "text"), pool, strategy)

    settings = StreamSettings(SIZE, GROUPS, steps, staleness=staleness)
    stream = GroupStream(engine, lambda count: [next(begun) for _ in range(count)], assignment, settings)
    waited = 0.0
    for step in range(1, steps + 1):
        engine.policies[""].version = step - 1
        began = time.monotonic()
        engine.wait(stream.take(step))
        waited += time.monotonic() - began
        engine.wait(stream.hold())
        time.sleep(UPDATE)
    engine.close()
    return waited / steps


def rows(quick: bool) -> list[Row]:
    """The figures."""
    steps = 12 if quick else 40
    _waited(0, 1)  # imports
    synchronous = _waited(0, steps)
    found = [(k, _waited(k, steps)) for k in (1, 2, 4)]
    # With 1, a slow call delays every second step, so that about half is the most that is to be had.
    return [
        Row("S27", f"a step waits, max_staleness {k}", value, "s", synchronous / 2 if k > 1 else None, synchronous)
        for k, value in found
    ]


if __name__ == "__main__":
    sys.exit(script(rows, __doc__))
