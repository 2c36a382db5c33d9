"""Whole trainings on two processes that play groups ahead; one process is killed, and with it the other.

    python ahead_ranks.py FOLDER POINT ...

Weights, trainer, checkpoints and journals are those of a training; texts follow a script, so that calls are made. A
process kills itself at its n-th beat: the begin or end of a paid call, a batch, or a file of a checkpoint. From 1001
on, points are those of the second process. FOLDER/POINT/notes has what both saw, FOLDER/kills.json what became of each
training.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import concertino as ct
from concertino_train.config import load_config
from concertino_train.factories.questions import Questions
from concertino_train.policies import Prompt, Sample, ScriptedPolicy, TransformersPolicy
from concertino_train.rewards import TERMS
from concertino_train.rl import run_rl
from concertino_train.rollouts import Assignment, Rollout
from concertino_train.rollouts.engine import Player, RolloutEngine
from concertino_train.rollouts.group_stream import GroupStream

STEPS, GROUPS, SIZE, CALLS, STALENESS = 5, 2, 2, 2, 2
SECOND = 1000
SAID = "paying now"


def loaded(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


HERE = Path(__file__).parent
own = loaded("own_conftest", HERE / "conftest.py")
ranks = loaded("sharded_ranks", HERE.parent / "trainer" / "sharded_ranks.py")
TERMS[own.Drawn.name] = own.Drawn


class Witness:
    """Notes what this process does with a training, and kills it at a beat."""

    def __init__(self, home: Path, beat: int) -> None:
        self.home, self.at, self.beats, self.rank = home, beat, 0, int(os.environ["RANK"])

    def beat(self) -> None:
        self.beats += 1
        if self.beats == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def note(self, **what: Any) -> None:
        with (self.home / "notes").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"rank": self.rank, **what}) + "\n")

    def file(self, event: str, given: tuple[Any, ...]) -> None:
        if event in ("open", "os.rename") and str(given[0]).startswith(str(self.home / "out" / "checkpoints")):
            self.beat()

    def look(self) -> None:
        """See what the training does."""
        sys.addaudithook(self.file)
        assignment, take, prompt = Questions.assignment, GroupStream.take, RolloutEngine.prompt

        def asked(questions: Questions, number: int) -> Assignment:
            found: Assignment = assignment(questions, number)
            task = replace(found.task, id=f"{self.rank} {number}")
            return replace(found, task=task, pool=ct.Pool.of(self.paid()))

        def prompted(engine: RolloutEngine, player: Player, *given: Any) -> Prompt:
            self.note(kind="asked", run=player.run.id, turn=player.turn + 1)
            return prompt(engine, player, *given)

        async def taken(stream: GroupStream, step: int) -> list[list[Rollout]]:
            groups = await take(stream, step)
            each = [rollout for group in groups for rollout in group]
            ages = [step - 1 - turn.version for rollout in each for turn in rollout.sequences[0].turns]
            names = [f"{rollout.assignment.task.id} {rollout.sample}" for rollout in each]
            self.note(kind="taken", step=step, samples=names, oldest=max(ages))
            return groups

        def generate(policy: TransformersPolicy, prompts: Sequence[Prompt]) -> list[Sample]:
            self.beat()
            return ScriptedPolicy(said, policy.codec).generate(prompts)

        replaced = (
            (Questions, "assignment", asked),
            (GroupStream, "take", taken),
            (RolloutEngine, "prompt", prompted),
            (TransformersPolicy, "generate", generate),
        )
        for kind, name, new in replaced:
            setattr(kind, name, new)

    def paid(self) -> ct.ToolSpec:
        @ct.tool
        async def pay(turn: int, *, ctx: ct.Context) -> str:
            """Pay for something."""
            self.beat()
            self.note(kind="paid", key=ctx.idempotency_key, run=ctx.run_id, turn=turn)
            await asyncio.sleep(0.05 * (turn % 2))
            self.beat()
            return "receipt"

        return pay


def said(context: str, prompt: Prompt) -> str:
    turn = context.count(SAID) + 1
    if turn > CALLS:
        return "<answer>8</answer>"
    call = json.dumps({"name": "pay", "arguments": {"turn": turn}})
    return f"<reasoning>{SAID}</reasoning>\n<tool_call>{call}</tool_call>"


def trained(home: Path, point: int) -> None:
    """Train from where the folder stands to the end, or to the beat."""
    beat = point if os.environ["RANK"] == "0" else point - SECOND
    witness = Witness(home, beat)
    witness.look()
    more = ["model.new.context=4096", "rollout.turn_tokens=400", "rollout.total_tokens=2000", "tasks.eval=[]"]
    more += [f"trainer.rl.steps={STEPS}", f"trainer.rl.questions_per_step={2 * GROUPS}", "trainer.rl.save_every=1"]
    more += [f"trainer.rl.max_staleness={STALENESS}", "rollout.strategy.max_rounds=4", "trainer.rl.audit=tell"]
    with ranks.two.watched():
        witness.note(kind="begun")
        run_rl(load_config(own.SETTINGS, [f"trainer.output={home / 'out'}", *more]), resume=(home / "out").exists())


def killed_and_resumed(home: Path, point: int) -> dict[str, Any]:
    home.mkdir()
    died = not ranks.on_two_ranks(lambda: trained(home, point))
    left = sorted(path.name for path in (home / "out" / "journals").rglob("*.jsonl"))
    ended = not died or ranks.on_two_ranks(lambda: trained(home, 0))
    return {"point": point, "died": died, "ended": ended, "resumed": len(left)}


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    folder = Path(sys.argv[1])
    found = [killed_and_resumed(folder / point, int(point)) for point in sys.argv[2:]]
    (folder / "kills.json").write_text(json.dumps(found))
