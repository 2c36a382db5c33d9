"""What each of two processes runs in `test_trainer_ranks.py`; prints one line of JSON per rank at the end.

torchrun --nproc-per-node 2 two_ranks.py FOLDER
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

spec = importlib.util.spec_from_file_location("tiny", Path(__file__).with_name("conftest.py"))
assert spec is not None
assert spec.loader is not None
tiny = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tiny)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from concertino_train.rollouts import Batch  # noqa: E402
from concertino_train.trainer import Algorithm, OrchestratorGRPOTrainer  # noqa: E402
from concertino_train.trainer.roles import role_adapters  # noqa: E402

SAME = Algorithm(
    steps=2, questions_per_step=4, group_size=4, learning_rate=1e-3, iterations=2, micro_batch=3, kl=0.05, device="cpu"
)
SETTINGS = {
    "dapo": SAME,
    "grpo": SAME.changed(loss="grpo", ratio="sequence", clip_low=0.01, clip_high=0.01),
    "packed": SAME.changed(packing=True),
}
TASKS = list(range(10))
ROLES = ("planner", "critic")
WATCHDOG = 30.0
"""Seconds in which a training has to end."""


def by_task(tasks: list[int], step: int) -> Batch:
    """Rows that depend on the question and the step alone, whichever rank asks it."""
    made = [tiny.make_batch(100 * step + task, 1, 3 + task % 3) for task in tasks]
    credit = np.concatenate([each.credit for each in made])
    rows = [row for each in made for row in each.rows]
    keep = np.concatenate([np.arange(len(each)) != task % 3 for task, each in zip(tasks, made, strict=True)])
    return Batch(rows, credit, keep, credit, (), {"reward": float(credit.sum())})


def train(name: str, folder: Path, **changed: Any) -> tuple[list[float], Any]:
    """Losses and weights of a training on the ranks that there are."""
    model = tiny.make_model()
    recorder = tiny.Recorder()
    trainer = OrchestratorGRPOTrainer(
        model,
        SETTINGS[name].changed(**changed),
        by_task,
        TASKS,
        codec=tiny.CODEC,
        folder=folder / name,
        callbacks=[recorder.callback],
    )
    trainer.train()
    return [log["loss"] for log in recorder.logs[:-1]], weights(model)


def weights(model: Any) -> Any:
    return torch.cat([value.detach().flatten() for value in model.parameters()])


@contextmanager
def watched() -> Iterator[None]:
    """End this process if what is done in here hangs."""
    timer = threading.Timer(WATCHDOG, os._exit, args=(42,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def uneven(tasks: list[int], step: int) -> Batch:
    """Many rows on the first rank; few, or none, on the second, and of other roles."""
    rank = int(os.environ["RANK"])
    if rank == 1 and step == 0:
        return Batch([])
    roles = ROLES if rank == 0 else ROLES[1:]
    return tiny.make_batch(step + rank, 2, 4 - 2 * rank, roles=roles)


def train_uneven(folder: Path, roles: tuple[str, ...], resume: bool = False) -> Any:
    from peft import LoraConfig

    model: Any = tiny.make_model()
    if roles:
        torch.manual_seed(1)
        model = role_adapters(model, roles, LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    settings = SAME.changed(steps=2, steps_per_generation=2, kl=0.0, correction="token_mask")
    trainer = OrchestratorGRPOTrainer(
        model, settings, uneven, TASKS, codec=tiny.CODEC, folder=folder, roles=roles, save_every=1
    )
    trainer.train(folder / "checkpoint-4" if resume else None)
    assert trainer.state.global_step == 8
    return weights(model)


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    rank, report = int(os.environ["RANK"]), {}
    with watched():
        for name in SETTINGS:
            losses, end = train(name, folder)
            report[name] = {"losses": losses, "weights": end.tolist() if rank == 0 else []}
    for roles in ((), ROLES):
        with watched():
            straight = train_uneven(folder / f"uneven{len(roles)}", roles)
            again = train_uneven(folder / f"uneven{len(roles)}", roles, resume=True)
        others = [torch.zeros_like(straight) for _ in range(2)]
        torch.distributed.all_gather(others, straight)
        report[f"uneven{len(roles)}"] = {
            "ranks_apart": float((others[0] - others[1]).abs().max()),
            "resumed_apart": float((straight - again).abs().max()),
        }
    (folder / f"report-{rank}.json").write_text(json.dumps(report))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
