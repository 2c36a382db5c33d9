"""A training without weights, to be killed: it takes groups that are played ahead, and keeps what it took.

    python ahead_program.py FOLDER BEAT

It kills itself at its n-th beat; a beat is the begin or end of a paid call, a batch, or a checkpoint.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from concertino import Pool, tool
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino_bench import Task
from concertino_train.policies import Prompt, Sample, ScriptedPolicy
from concertino_train.rollouts import Assignment, RolloutEngine, TokenLimits
from concertino_train.rollouts.group_stream import GroupStream, StreamSettings

STEPS, GROUPS, SIZE, CALLS = 6, 2, 2, 2
HOME, BEAT = Path(sys.argv[1]), int(sys.argv[2])
beats = 0


def beat() -> None:
    global beats
    beats += 1
    if beats == BEAT:
        os.kill(os.getpid(), signal.SIGKILL)


def note(file: str, text: str) -> None:
    with (HOME / file).open("a", encoding="utf-8") as lines:
        lines.write(f"{text}\n")


def said(context: str, prompt: Prompt) -> str:
    turn = context.count("<|begin|>assistant")
    if turn > CALLS:
        return "<answer>8</answer>"
    return f'<reasoning>r</reasoning>\n<tool_call>{{"name": "pay", "arguments": {{"turn": {turn}}}}}</tool_call>'


class Beating(ScriptedPolicy):
    def generate(self, prompts: Sequence[Prompt]) -> list[Sample]:
        beat()
        return super().generate(prompts)


def assignment(number: int) -> Assignment:
    @tool
    async def pay(turn: int) -> str:
        """Pay for something."""
        beat()
        note("paid", f"q{number} {turn}")
        await asyncio.sleep(0.01 * (number % 3))
        beat()
        return f"receipt {number} {turn}"

    return Assignment(Task(f"q{number}", f"q{number}?", ("8",), "text"), Pool.of(pay), ParallelRounds())


def main() -> None:
    policy = Beating(said)
    engine = RolloutEngine(policy, limits=TokenLimits(turn=2000, total=20_000), patience=0.01)
    asked = 0

    def numbers(count: int) -> list[int]:
        nonlocal asked
        asked += count
        return list(range(asked - count, asked))

    settings = StreamSettings(SIZE, GROUPS, STEPS, staleness=2)
    stream = GroupStream(engine, numbers, assignment, settings, journals=HOME / "journals")
    file, done, taken = HOME / "checkpoint.json", 0, list[list[str]]()
    if file.exists():
        state = json.loads(file.read_text())
        asked, done, taken = state["asked"], state["done"], state["taken"]
        stream.load_state_dict(state["stream"])
    for step in range(done + 1, STEPS + 1):
        policy.version = step - 1
        groups = engine.wait(stream.take(step))
        taken.append([f"{each.assignment.task.id} {each.sample}" for group in groups for each in group])
        assert all(
            step - 1 - turn.version <= 2 for group in groups for each in group for turn in each.sequences[0].turns
        )
        for group in groups:
            for each in group:
                note("seen", f"{each.assignment.task.id} {len(each.run.observations)}")
        engine.wait(stream.hold())
        state = {"asked": asked, "done": step, "taken": taken, "stream": stream.state_dict()}
        beat()
        (HOME / "new").write_text(json.dumps(state))
        (HOME / "new").replace(file)
        beat()
    engine.close()


if __name__ == "__main__":
    main()
