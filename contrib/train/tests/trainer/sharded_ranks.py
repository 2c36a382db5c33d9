"""What two processes run in `test_trainer_sharding.py`; every rank writes a report.

    python sharded_ranks.py FOLDER POINT ...

Every kind of model is trained to its end and again from its middle; and one training is killed at each of the points,
and resumed. The processes are forked when everything is imported, which takes most of the time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

spec = importlib.util.spec_from_file_location("two_ranks", Path(__file__).with_name("two_ranks.py"))
assert spec is not None
assert spec.loader is not None
two = importlib.util.module_from_spec(spec)
spec.loader.exec_module(two)
tiny = two.tiny

import torch  # noqa: E402
from concertino_train.policies import Prompt, TransformersPolicy  # noqa: E402
from concertino_train.rollouts import Batch  # noqa: E402
from concertino_train.running.checkpoints import latest_checkpoint  # noqa: E402
from concertino_train.trainer import OrchestratorGRPOTrainer  # noqa: E402
from concertino_train.trainer.roles import role_adapters  # noqa: E402
from concertino_train.trainer.sharding import gathered_weights, save_whole  # noqa: E402

SETTINGS = two.SAME.changed(correction="token_mask")
"""KL, several updates, several micro-batches, importance weights: all that passes over rows."""
# Several trainings at once on a busy machine: this is for what hangs, not for what is slow.
two.WATCHDOG = 200.0
KINDS = ("packed",) if os.environ.get("CONCERTINO_PACKED") else ("whole", "adapter", "roles")
SECOND = 100
"""From this number on, points are those of the second process."""
PROMPTS = [Prompt((1, 2, 3, number), 6 + 5 * number, seed=number) for number in range(3)]


def model_of(kind: str, base: Path | None = None) -> Any:
    """A whole model, one with an adapter, or with an adapter for each role."""
    from peft import LoraConfig, get_peft_model

    model: Any = tiny.make_model()
    if base is not None:
        model.name_or_path = str(base)
    torch.manual_seed(1)
    config = LoraConfig(r=2, target_modules=["q_proj", "down_proj"], init_lora_weights=False)
    if kind == "adapter":
        return get_peft_model(model, config)
    return role_adapters(model, two.ROLES, config) if kind == "roles" else model


def rows_of(kind: str) -> Any:
    """Rows by question: uneven numbers of them, and some are filtered; of both roles where these have adapters."""
    roles = two.ROLES if kind == "roles" else ("orchestrator",)

    def sample(tasks: list[int], step: int) -> Batch:
        made = [two.by_task([task], step) if kind != "roles" else by_roles(task, step) for task in tasks]
        rows = [row for each in made for row in each.rows]
        credit = two.np.concatenate([each.credit for each in made])
        keep = two.np.concatenate([each.keep for each in made])
        return Batch(rows, credit, keep, credit, (), {"reward": 0.0})

    def by_roles(task: int, step: int) -> Batch:
        return tiny.make_batch(100 * step + task, 1, 2 + task % 3, roles=roles[task % 2 :])

    return sample


def train(kind: str, folder: Path, *, sharding: str, resume: str = "", **settings: Any) -> tuple[Any, Any]:
    """Train on the ranks that there are; the trainer, and what it did. Rows are packed where weights are spread."""
    recorder = tiny.Recorder()
    settings = {"packing": kind == "packed" and sharding == "full", **settings}
    trainer = OrchestratorGRPOTrainer(
        model_of(kind, folder / "base"),
        SETTINGS.changed(sharding=sharding, **settings),
        rows_of(kind),
        two.TASKS,
        codec=tiny.CODEC,
        folder=folder / "run",
        roles=two.ROLES if kind == "roles" else (),
        callbacks=[recorder.callback],
        save_every=1,
    )
    trainer.train(folder / "run" / resume if resume else None)
    return trainer, recorder


def parts_of(model: Any) -> list[Any]:
    """What this process holds of each weight that is trained."""
    return [value.to_local().clone() for value in model.parameters() if value.requires_grad]


def sampled_alone(trainer: Any) -> dict[str, Any]:
    """Texts that this rank samples with all weights, a different number on each rank."""
    rank = trainer.accelerator.process_index
    policy = TransformersPolicy(lambda: trainer.model, tiny.CODEC, batch=2)
    with trainer.whole_weights():
        texts = [each.ids for each in policy.generate(PROMPTS[: 3 - 2 * rank])]
    held = sum(value.to_local().numel() for value in trainer.model.parameters())
    return {"texts": texts, "held": held, "all": sum(value.numel() for value in trainer.model.parameters())}


def compared(folder: Path) -> None:
    """Train each kind of model to its end, and again from its middle."""
    rank, report = int(os.environ["RANK"]), dict[str, Any]()
    for kind in KINDS:
        home = folder / kind
        with two.watched():
            trainer, recorder = train(kind, home, sharding="full")
            straight = parts_of(trainer.model)
            sampled = sampled_alone(trainer) if kind == "whole" else {}
            save_whole(trainer.model, home / "saved")
            weights = gathered_weights(trainer.model, trained=kind in ("adapter", "roles"))
        report[kind] = {"losses": [log["loss"] for log in recorder.logs[:-1]], **sampled}
        if kind in ("whole", "roles"):  # adapters by role are the harder case
            with two.watched():
                again = parts_of(train(kind, home, sharding="full", resume="checkpoint-2")[0].model)
            report[kind]["equal"] = all(map(torch.equal, straight, again))
        if rank == 0:
            torch.save({"gradients": recorder.gradients, "weights": weights}, home / "trained.pt")
    (folder / f"report-{rank}.json").write_text(json.dumps(report))


def trained_on(folder: Path, point: int) -> None:
    """Train from where the folder stands, and die where a file of it is opened or renamed for the given time."""
    rank, opened = int(os.environ["RANK"]), 0

    def watch(event: str, given: tuple[Any, ...]) -> None:
        nonlocal opened
        if event in ("open", "os.rename") and str(given[0]).startswith(str(folder)):
            opened += 1
            # The second process writes less: its parts, and the state of its random generators.
            if opened == (point if rank == 0 else point - SECOND):
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    with two.watched():
        trainer = OrchestratorGRPOTrainer(
            model_of("whole"),
            SETTINGS.changed(sharding="full", steps=3),
            rows_of("whole"),
            two.TASKS,
            codec=tiny.CODEC,
            folder=folder / "run",
            save_every=1,
        )
        trainer.train(True if latest_checkpoint(folder / "run") else None)
    torch.save(parts_of(trainer.model), folder / f"end-{rank}.pt")


def on_two_ranks(work: Callable[[], None]) -> bool:
    """Do something in two forked processes; whether both came to the end. One that dies takes the other with it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks: dict[int, int] = {}
    for rank in range(2):
        if (pid := os.fork()) == 0:
            own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            os.environ.update({name: str(value) for name, value in own.items()})
            try:
                torch.set_num_threads(1)
                work()
                torch.distributed.destroy_process_group()
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        ranks[pid] = rank
    whole = True
    while ranks:
        pid, status = os.wait()
        del ranks[pid]
        if status:
            whole = False
            for other in ranks:
                os.kill(other, signal.SIGKILL)
    return whole


def killed_and_resumed(folder: Path, point: int) -> dict[str, Any]:
    """What became of a training that was killed once."""
    folder.mkdir()
    died = not on_two_ranks(lambda: trained_on(folder, point))
    newest = latest_checkpoint(folder / "run")
    ended = not died or on_two_ranks(lambda: trained_on(folder, 0))
    return {"point": point, "died": died, "from": newest.name if newest else "", "ended": ended}


def main(folder: Path, points: list[int]) -> None:
    for kind in KINDS:
        tiny.make_model().save_pretrained(str(folder / kind / "base"))
    assert on_two_ranks(lambda: compared(folder))
    if not points:
        return
    found = [killed_and_resumed(folder / str(point), point) for point in (0, *points)]
    for rank in range(2):
        straight = torch.load(folder / "0" / f"end-{rank}.pt")
        for each in found:
            end = torch.load(folder / str(each["point"]) / f"end-{rank}.pt") if each["ended"] else []
            each["equal"] = each.get("equal", True) and len(end) > 0 and all(map(torch.equal, straight, end))
    (folder / "kills.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(each) for each in sys.argv[2:]])
