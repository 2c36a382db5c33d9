"""A training without weights of its own whose policy a server samples; it is killed, or its server is.

    python served_training.py FOLDER BEAT

`OPTIONS` (JSON) says how the server is declared. Each step gives the server a folder of weights, and the stand-in's
log-probabilities tell which folder answered. The program kills itself at its n-th beat: the begin or end of a paid
call, a request to the server, or a checkpoint. It ends with 3 and the reason if the server fails it.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import concertino_vllm
from concertino import Pool, ProviderError, tool
from concertino.strategies.parallel_rounds import ParallelRounds
from concertino_bench import Task
from concertino_local.codec import ByteCodec
from concertino_train.policies import VLLMPolicy
from concertino_train.rollouts import Assignment, RolloutEngine, TokenLimits
from concertino_train.rollouts.group_stream import GroupStream, StreamSettings
from concertino_vllm.policy import policy_server
from concertino_vllm.serving.client import VllmClient

STEPS, GROUPS, SIZE, STALENESS = 5, 2, 2, 2
HOME, BEAT = Path(sys.argv[1]), int(sys.argv[2])
beats = 0


def beat() -> None:
    global beats
    beats += 1
    if beats == BEAT:
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def two_beats() -> Iterator[None]:
    beat()
    yield
    beat()


def note(file: str, text: str) -> None:
    with (HOME / file).open("a", encoding="utf-8") as lines:
        lines.write(f"{text}\n")


def weights(step: int) -> Path:
    """A folder that looks like a model's."""
    folder = HOME / "weights" / f"step-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    (folder / "config.json").write_text("{}")
    return folder


def number(folder: Path) -> float:
    """The log-probability that the stand-in gives with these weights."""
    return -(zlib.crc32(str(folder).encode()) % 1000 + 1) / 1000


class Beating(VllmClient):
    async def post(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        with two_beats():
            return await super().post(path, body, seconds=seconds)


def assignment(number: int) -> Assignment:
    @tool
    async def pay(turn: int) -> str:
        """Pay for something."""
        with two_beats():
            note("paid", f"q{number} {turn}")
        return f"receipt {number} {turn}"

    return Assignment(Task(f"q{number}", f"q{number}?", ("8",), "text"), Pool.of(pay), ParallelRounds())


def declared() -> Any:
    options = json.loads(os.environ["OPTIONS"])
    return concertino_vllm.model("policy", **options, **({} if "attach" in options else {"model": weights(0)}))


def check(step: int, groups: Any) -> None:
    """No token is too old, and each is of the weights that its turn names."""
    for turn in (turn for group in groups for each in group for turn in each.sequences[0].turns):
        assert 0 <= step - 1 - turn.version <= STALENESS, f"step {step} takes a turn of version {turn.version}"
        wanted = number(weights(turn.version + 1))
        assert set(turn.logprobs) == {wanted}, f"step {step}: {set(turn.logprobs)} for version {turn.version}"


def train() -> None:
    policy_server.VllmClient = Beating
    policy = VLLMPolicy(declared(), ByteCodec())
    engine = RolloutEngine(policy, limits=TokenLimits(turn=2000, total=20_000), patience=0.01)
    asked = 0

    def numbers(count: int) -> list[int]:
        nonlocal asked
        asked += count
        return list(range(asked - count, asked))

    settings = StreamSettings(SIZE, GROUPS, STEPS, staleness=STALENESS)
    stream = GroupStream(engine, numbers, assignment, settings, journals=HOME / "journals")
    file, done, taken = HOME / "checkpoint.json", 0, list[list[str]]()
    if file.exists():
        state = json.loads(file.read_text())
        asked, done, taken = state["asked"], state["done"], state["taken"]
        stream.load_state_dict(state["stream"])
    try:
        for step in range(done + 1, STEPS + 1):
            engine.wait(stream.hold())
            policy.update(weights(step))
            policy.version = step - 1
            groups = engine.wait(stream.take(step))
            check(step, groups)
            taken.append([f"{each.assignment.task.id} {each.sample}" for group in groups for each in group])
            state = {"asked": asked, "done": step, "taken": taken, "stream": stream.state_dict()}
            with two_beats():
                (HOME / "new").write_text(json.dumps(state))
                (HOME / "new").replace(file)
    finally:
        engine.close()
        policy.close()


if __name__ == "__main__":
    try:
        train()
    except (ProviderError, concertino_vllm.SwapError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.exit(3)
