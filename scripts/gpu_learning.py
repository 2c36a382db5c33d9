"""How fast a new model learns on this machine, and whether it learns: what two parts of `make gpu` run.

    python scripts/gpu_learning.py machine FOLDER
    python scripts/gpu_learning.py small | large FOLDER

A model is made from nothing, taught by trajectories of the practice domain, and reinforced through the rollout engine
and a pool; once more with rewards dealt out at random, which must not help. On a CPU all sizes are smaller.

The invariant: `FOLDER/figures.json` is written whole after each stage, and a stage that is in it is not done again. So
a part that was stopped has the figures of what it did, and continues from there.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1", TRL_EXPERIMENTAL_SILENCE="1")

import torch
from concertino_train.cli.estimate import shape_of
from concertino_train.cli.gpu_plan import plan_training
from concertino_train.cli.gpus import GPUS, Gpu, read_gpus
from concertino_train.config import TrainConfig, load_config

RECIPE = "paramanager/toy"
Figures = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """A model, and how long it learns.

    Attributes:
        layers, hidden, heads: of the model.
        taught: conversations; sft_steps of `batch` of them.
        rl_steps: of `questions` times `group` rollouts.
        tests: questions that measure it.
        rates: learning rates, of teaching and of reinforcement.
        micro_batch: rows of a pass.
    """

    layers: int
    hidden: int
    heads: int
    taught: int
    sft_steps: int
    batch: int
    rl_steps: int
    questions: int
    group: int
    tests: int
    rates: tuple[float, float]
    micro_batch: int

    def overrides(self, folder: Path, cuda: bool) -> list[str]:
        """The recipe, changed to this size."""
        tasks = "{set: practice/facts, options: {split: train, level: 2, count: %d, start: %d}}"
        machine = ["trainer.device=cuda", "trainer.threads=null"] if cuda else ["trainer.device=cpu"]
        return [
            f"trainer.output={folder}",
            f"model.new={{layers: {self.layers}, hidden: {self.hidden}, heads: {self.heads}, context: 768}}",
            f"data.collect.tasks=[{tasks % (self.taught, 2000)}]",
            f"tasks.train=[{tasks % (self.rl_steps * self.questions, 0)}]",
            "tasks.eval=[]",
            f"rollout.group_size={self.group}",
            "trainer.keep=1",
            f"trainer.sft.steps={self.sft_steps}",
            f"trainer.sft.batch={self.batch}",
            f"trainer.sft.micro_batch={self.batch}",
            f"trainer.sft.save_every={self.sft_steps}",
            f"trainer.sft.learning_rate={self.rates[0]}",
            f"trainer.rl.steps={self.rl_steps}",
            f"trainer.rl.save_every={self.rl_steps}",
            f"trainer.rl.questions_per_step={self.questions}",
            f"trainer.rl.micro_batch={self.micro_batch}",
            f"trainer.rl.learning_rate={self.rates[1]}",
            "trainer.rl.eval_every=null",
            "trainer.rl.audit=tell",
            "logging.traces.every=0",
            "logging.plot_every=0",
            *machine,
        ]


SIZES = {
    # Some 28 and 300 million parameters.
    ("small", True): Size(8, 512, 8, 2400, 300, 64, 15, 32, 8, 200, (1e-3, 5e-5), 64),
    ("large", True): Size(22, 1024, 16, 2400, 200, 64, 10, 32, 8, 200, (3e-4, 1e-5), 64),
    ("small", False): Size(2, 64, 4, 60, 20, 8, 3, 2, 4, 4, (3e-3, 2e-4), 8),
    ("large", False): Size(3, 96, 4, 60, 10, 8, 2, 2, 4, 4, (3e-3, 2e-4), 8),
}


def machine() -> Figures:
    """What this machine is, and what it can do at most."""
    cuda = torch.cuda.is_available()
    _, gpu = read_gpus("here")
    known = data_sheet(gpu.name)
    return {
        "device": gpu.name,
        "cuda": torch.version.cuda if cuda else None,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("torch", "transformers", "trl", "peft")},
        "memory": gpu.memory,
        "measured_rate": gpu.rate,
        "measured_bandwidth": gpu.bandwidth,
        "peak_rate": known.rate if known else gpu.rate,
        "peak_of": "data sheet, dense bfloat16" if known else "best matrix product measured here",
    }


def data_sheet(name: str) -> Gpu | None:
    """The GPU that a driver calls so; None where there is no data sheet of it."""
    words = name.replace("-", " ").split()
    found = [gpu for gpu in GPUS.values() if all(word in words for word in gpu.name.replace("-", " ").split())]
    # Of A10 and A100 only one is a word of a name; of H100 and H100-PCIe, the one that says more.
    return max(found, key=lambda gpu: len(gpu.name), default=None)


class Peak:
    """Bytes that a stage took at most: of the GPU, else of this process above what it had."""

    def __init__(self) -> None:
        gc.collect()
        self._cuda = torch.cuda.is_available()
        self._before = 0
        if self._cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        else:
            Path("/proc/self/clear_refs").write_text("5")  # forgets the greatest size so far
            self._before = _resident("VmRSS")

    def bytes(self) -> int:
        """So far."""
        return torch.cuda.max_memory_allocated() if self._cuda else max(0, _resident("VmHWM") - self._before)


def _resident(name: str) -> int:
    """A line of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


class Stages:
    """The figures of a part, stage by stage."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "figures.json"
        self.figures: Figures = json.loads(self._file.read_text()) if self._file.is_file() else {}

    def do(self, name: str, work: Callable[[], Figures]) -> Figures:
        """Do a stage, unless it is done."""
        if name not in self.figures:
            began = time.monotonic()
            print(f"{name} ...", flush=True)
            peak = Peak()
            figures = work()
            figures |= {"wall_seconds": time.monotonic() - began, "peak_memory": peak.bytes()}
            self.figures[name] = figures
            unfinished = self._file.with_suffix(".part")
            unfinished.write_text(json.dumps(self.figures, indent=1) + "\n")
            unfinished.replace(self._file)
            print(f"{name}: {figures['wall_seconds']:.0f} s", flush=True)
        done: Figures = self.figures[name]
        return done


def learn(size: Size, folder: Path, cuda: bool) -> Figures:
    """Teach, reinforce and measure a model; figures by stage."""
    folder.mkdir(parents=True, exist_ok=True)
    stages, overrides = Stages(folder), size.overrides(folder, cuda)

    def config(*more: str) -> TrainConfig:
        return load_config(RECIPE, [*overrides, *more])

    taught, rl = folder / "sft" / "model", folder / "rl"
    control = "algorithm.shuffle_rewards=true"
    stages.do("machine", machine)
    stages.do("collect", lambda: _collected(config()))
    stages.do("sft", lambda: _taught(config(), size))
    stages.do("before", lambda: _measured(config(*_tests(size, taught))))
    stages.do("rl", lambda: {**_reinforced(config(f"model.path={taught}"), rl), "planned": _planned(overrides)})
    stages.do("after", lambda: _measured(config(*_tests(size, rl / "model"))))
    stages.do("control", lambda: _reinforced(config(f"model.path={taught}", control), folder / "control"))
    stages.do("after_control", lambda: _measured(config(*_tests(size, folder / "control" / "model"))))
    return stages.figures


def _tests(size: Size, model: Path) -> list[str]:
    tests = f"{{set: practice/facts, options: {{split: test, level: 2, count: {size.tests}}}}}"
    return [f"tasks.eval=[{tests}]", f"model.path={model}", "trainer.eval.temperature=1.0"]


def _collected(config: TrainConfig) -> Figures:
    from concertino_train.collection import run_collection

    return {"examples": run_collection(config).examples}


def _taught(config: TrainConfig, size: Size) -> Figures:
    from concertino_train.running.metrics import read_metrics
    from concertino_train.sft import run_sft

    result = run_sft(config, resume=True)
    lines = list(read_metrics(result.folder / "metrics.jsonl"))
    first, last = lines[0], lines[-1]
    # Both are totals, so what was first, with all that is compiled and loaded then, is left out.
    seconds = last["elapsed"] - first["elapsed"]
    tokens = last["tokens_per_second"] * last["elapsed"] - first["tokens_per_second"] * first["elapsed"]
    rate = tokens / seconds if seconds else None
    shape = shape_of(config, [])
    assert shape is not None
    reached = 6.0 * shape.parameters * rate if rate else None
    return {"parameters": shape.parameters, "tokens_per_second": rate, "reached": reached, "loss": last["loss"]}


def _measured(config: TrainConfig) -> Figures:
    """The reward of each test, sampled once with the same seeds."""
    from concertino_train.config.named import make_reward
    from concertino_train.factories.learners import make_engine, make_learner
    from concertino_train.factories.models import load_model
    from concertino_train.factories.questions import evaluation_assignments
    from concertino_train.rl.steps import measured_rollouts
    from concertino_train.rollouts.rollout import score_rollouts
    from concertino_train.running.quiet import quietly

    with quietly():
        learner = make_learner(config, load_model(config))
    engine = make_engine(config, learner.policies)
    try:
        learner.refresh(1)
        rollouts = measured_rollouts(config, engine, evaluation_assignments(config))
    finally:
        engine.close()
        learner.close()
    scored = score_rollouts(rollouts, make_reward(config.reward))
    right = [rollout.episode.correct for rollout in rollouts]
    return {"rewards": [each.total for each in scored], "right": statistics.fmean(right)}


def _reinforced(config: TrainConfig, folder: Path) -> Figures:
    from concertino_train.rl import run_rl

    run_rl(config, output=folder, resume=True)
    shape = shape_of(config, [])
    assert shape is not None
    return step_figures(folder, shape.parameters, config.trainer.rl.iterations)


def _planned(overrides: Sequence[str]) -> Figures:
    """What `concertino train plan` says of this machine, as the settings are."""
    (way, *_) = plan_training(RECIPE, overrides, "rl", read_gpus("here")).ways
    seconds = {"sample_seconds": way.sample_seconds, "update_seconds": way.update_seconds}
    return {"memory": way.memory, "sample_rate": way.sample_rate, **seconds}


def step_figures(folder: Path, parameters: int, iterations: int) -> Figures:
    """Medians over the steps of a reinforcement, the first one, which warms up, left out.

    The update is all of a step but its sampling: losses, gradients, optimiser, log lines. What it reached is counted as
    6 operations for each weight and token of a row; attention is not counted.
    """
    from concertino_train.running.metrics import read_metrics

    lines = list(read_metrics(folder / "metrics.jsonl"))
    lines = lines[1:] or lines

    def median(of: Callable[[Figures], float]) -> float:
        return statistics.median(of(line) for line in lines)

    update = median(lambda line: line["seconds"] - line["seconds/sample"])
    computed = median(lambda line: line["tokens/computed"])
    return {
        "steps": len(lines),
        "seconds": median(lambda line: line["seconds"]),
        "generate_seconds": median(lambda line: line["seconds/generate"]),
        "update_seconds": update,
        "generated_per_second": median(lambda line: line["tokens_per_second"]),
        "updated_per_second": computed / update if update else None,
        "reached": 6.0 * parameters * iterations * computed / update if update else None,
        "outside": median(lambda line: (line["seconds/sample"] - line["seconds/generate"]) / line["seconds"]),
        "calls": median(lambda line: line["seconds/environment"] / line["seconds"]),
    }


def main() -> None:
    """Do a part; its figures are in the folder, and nothing else is printed than how far it is."""
    part, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if part == "machine":
        Stages(folder).do("machine", machine)
        return
    cuda = torch.cuda.is_available()
    learn(SIZES[part, cuda], folder, cuda)


if __name__ == "__main__":
    main()
