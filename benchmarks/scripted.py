"""The tools and the model that the scenarios use: a tool that does nothing, and a model that says what was agreed.

Every price is set, so that a budget in units and $ has something to reserve and to settle.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import concertino as ct

BUDGET = ct.Budget(calls=10**9, units=1e9, usd=1e6, seconds=3600)
COST = ct.Cost(units=1, usd=0.0001)
TEXT = '{"text": "hello", "count": 3}'


async def probe(text: str, count: int) -> str:
    """Give the text back."""
    return text


def probes(number: int) -> list[ct.ToolSpec]:
    """`probe`, and more of it under other names."""
    return [ct.tool(name="probe" if n == 0 else f"probe{n}", timeout=30.0, cost=COST)(probe) for n in range(number)]


def turn(*calls: tuple[str, object]) -> str:
    """A turn of ParaManager's format."""
    blocks = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
    return "<reasoning>go on</reasoning>" + "".join(f"<tool_call>{block}</tool_call>" for block in blocks)


class Script(ct.Model):
    """Says its turns, then ends the run and answers. `asked` holds when it was asked, on `time.perf_counter`."""

    def __init__(self, turns: Sequence[str]) -> None:
        self.texts = iter([*turns, turn(("final_answer", {})), "<answer>done</answer>"])
        self.asked: list[float] = []

    async def chat(self, request: ct.ChatRequest) -> ct.Reply:
        """The next text, at once."""
        self.asked.append(time.perf_counter())
        return ct.Reply(next(self.texts), usage=ct.Usage(input_tokens=10, output_tokens=10))


def led_by(turns: Sequence[str]) -> tuple[ct.Orchestrator, Script]:
    """An orchestrator with that script, its price known, and rounds enough."""
    model = Script(turns)
    spec = ct.ModelSpec("scripted/model", lambda: model, prices=ct.Prices(1.0, 2.0))
    return ct.Orchestrator(spec, ct.ParallelRounds(max_rounds=len(turns) + 1)), model


def finished(run: ct.Run, rounds: int) -> ct.Run:
    """The run, if it went as agreed."""
    if run.answer != "done" or len(run.rounds) != rounds or not all(seen.ok for seen in run.observations):
        raise SystemExit(f"the run went wrong: {run.stop} {run.detail} after {len(run.rounds)} rounds")
    return run
