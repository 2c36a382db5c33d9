"""Running a study: each training in a process of its own, several at once; finished ones are not repeated.

    taught/KEY/        collected and taught once for all arms, of any study, that share it
    STUDY/SEED/ARM/    trained from there, then measured: `eval.json`; arms that differ in what they are measured on
                       share the training of the first of them

An interrupted study continues: trainings resume from their checkpoints, measured arms are read. The
invariant: what is read was made with the settings that are asked for; anything else is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from concertino import ConcertinoError
from concertino.core.child_python import module_command, safe_environment
from concertino.executor import TooMuchOutput, child_environment, run_bounded

from concertino_train.config.config import load_config

from .study import Arm, Study, check_seeds

Tell = Callable[[str], None]
SAMPLED = "sampled/"
"""Begins the names of measures at temperature 1, that of training; the others are of greedy rollouts."""
_PRINTED_BYTES = 64 * 2**20
"""What one command may print."""
_LOCKS: dict[str, threading.Lock] = {}
"""A lock for each folder in which arms are taught or reinforced."""


class StudyFailed(ConcertinoError):
    """A training of a study failed; says which, with the end of what it printed."""


@dataclass
class TrainedArm:
    """One arm with one seed, measured."""

    arm: str
    seed: int
    result: dict[str, Any]
    seconds: dict[str, float] = field(default_factory=dict)

    def value(self, measure: str) -> float | None:
        """A metric, a figure or the reward; None where it cannot be worked out.

        `sampled/NAME` is that of the rollouts that were sampled at temperature 1; others are of greedy ones.
        """
        if measure in self.result.get("training", {}):
            return _number(self.result["training"][measure])
        result = self.result
        if measure.startswith(SAMPLED):
            measure, result = measure.removeprefix(SAMPLED), self.result.get("sampled", {})
        if measure == "reward":
            return _number(result.get("reward"))
        if measure in result.get("metrics", {}):
            return _number(result["metrics"][measure]["value"])
        return _number(result.get("figures", {}).get(measure))


def run_study(
    study: Study,
    folder: Path,
    *,
    seeds: Sequence[int],
    jobs: int = 1,
    settings: Sequence[str] = (),
    tell: Tell = lambda line: None,
    env_from: Sequence[str] = (),
) -> list[TrainedArm]:
    """Run a study, or continue it.

    Args:
        folder: of all studies; what is taught is shared among those that teach alike.
        seeds: with which each arm is trained.
        jobs: trainings at once.
        settings: `key=value` for all arms, behind those of the study.
        tell: is told what begins and ends.
        env_from: environment variables that trainings are given beside harmless ones, such as OPENAI_API_KEY.

    Raises:
        StudyFailed: a training failed.
    """
    work = _StudyRunner(study, folder, tuple(settings), tell, tuple(env_from))
    pairs = [(seed, arm) for seed in check_seeds(seeds) for arm in study.arms]
    before, begun = spent_seconds(study, folder), _seconds_of_children()
    try:
        with ThreadPoolExecutor(jobs) as threads:
            tasks = [threads.submit(work.train, arm, seed) for seed, arm in pairs]
            try:
                return [task.result() for task in tasks]
            except BaseException:
                work.stop()
                for task in tasks:
                    task.cancel()
                raise
    finally:
        spent = _spent_file(study, folder)
        spent.parent.mkdir(parents=True, exist_ok=True)
        spent.write_text(json.dumps(round(before + _seconds_of_children() - begun, 1)), encoding="utf-8")


def spent_seconds(study: Study, folder: Path) -> float:
    """CPU-seconds that a study has taken: collecting, teaching, learning and measuring, in all its sittings.

    What another study of the folder had taught already is not counted again; nor is a sitting that was killed.
    """
    file = _spent_file(study, folder)
    return float(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else 0.0


def _spent_file(study: Study, folder: Path) -> Path:
    return folder / study.name / "cpu_seconds.json"


def _seconds_of_children() -> float:
    """CPU-seconds of all processes that this one has started and that have ended."""
    times = os.times()
    return times.children_user + times.children_system


class _StudyRunner:
    def __init__(
        self, study: Study, folder: Path, settings: tuple[str, ...], tell: Tell, env_from: tuple[str, ...]
    ) -> None:
        self.study, self.folder, self.settings, self.tell = study, folder, settings, tell
        self.env_from = env_from
        self._samples = any(measure.startswith(SAMPLED) for measure in study.measures)
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._reinforced: set[Path] = set()
        self._stopped = False

    def train(self, arm: Arm, seed: int) -> TrainedArm:
        """Teach, train and measure one arm."""
        home = self.folder / self.study.name / f"seed-{seed}" / arm.name
        done = home / "eval.json"
        key = self._key(arm, seed)
        if done.exists():
            return TrainedArm(arm.name, seed, _measured(done, key))
        taught = self._teach(arm, seed)
        model, training = taught, dict[str, float]()
        if arm.learn is not None:
            folder = self._reinforce(arm, seed, taught)
            model, training = folder / "model", _training(folder)
        given = [*self._all_settings(arm, seed), f"model.path={model}"]
        result = self._run("eval", home, [*given, "--system", arm.name], f"{arm.name}, seed {seed}")
        if self._samples:
            given += ["trainer.eval.temperature=1", "--system", f"{arm.name}-sampled"]
            result["sampled"] = self._run("eval", home, given, f"{arm.name}, seed {seed}, sampled")
        result |= {"training": training, "made_with": key}
        home.mkdir(parents=True, exist_ok=True)
        # Written beside and moved, so that an arm that is there is whole.
        part = done.with_suffix(".part")
        part.write_text(json.dumps(result), encoding="utf-8")
        part.replace(done)
        return TrainedArm(arm.name, seed, result)

    def _teach(self, arm: Arm, seed: int) -> Path:
        """The weights that an arm begins with; made once for all that share them."""
        given = self._settings(arm, seed)
        home = self.folder / "taught" / f"{self.study.recipe.replace('/', '-')}-{_taught(self.study.recipe, given)}"
        # Arms that share their teaching run at the same time; the first one makes it.
        with _LOCKS.setdefault(str(home), threading.Lock()):
            model = home / "sft" / "model"
            if not (model / "training.yaml").exists():
                self._run("collect", home, given, f"trajectories, seed {seed}")  # continues where it was interrupted
                self._run("sft", home, [*given, "--resume"], f"teaching, seed {seed}")
            return model

    def _reinforce(self, arm: Arm, seed: int, taught: Path) -> Path:
        """The folder of an arm's reinforcement learning; made once for all arms that learn alike."""
        assert arm.learn is not None
        first = next(each for each in self.study.arms if (each.teach, each.learn) == (arm.teach, arm.learn))
        home = self.folder / self.study.name / f"seed-{seed}" / first.name
        with _LOCKS.setdefault(str(home), threading.Lock()):
            if home not in self._reinforced:
                given = [*self._settings(arm, seed), *arm.learn, f"model.path={taught}"]
                # A training that an earlier sitting has finished is found again at once.
                self._run("rl", home, [*given, "--resume"], f"{first.name}, seed {seed}")
                self._reinforced.add(home)
        return home / "rl"

    def _settings(self, arm: Arm, seed: int) -> list[str]:
        return [*self.study.settings, *arm.teach, f"trainer.seed={seed}", *self.settings]

    def _all_settings(self, arm: Arm, seed: int) -> list[str]:
        return [*self._settings(arm, seed), *(arm.learn or ()), *self.study.measure, *arm.measure]

    def _key(self, arm: Arm, seed: int) -> str:
        """Equal for equal settings of teaching, learning and measuring."""
        data = load_config(self.study.recipe, self._all_settings(arm, seed)).resolved()
        return _hash({**data, "sampled": self._samples})

    def _run(self, name: str, home: Path, given: Sequence[str], what: str) -> dict[str, Any]:
        """One command in a process of its own; what it prints as JSON."""
        command = module_command(
            "concertino",
            "train",
            name,
            "--config",
            self.study.recipe,
            "--output",
            str(home),
            "--json",
            *given,
        )
        # One thread each: several trainings share the cores.
        environment = safe_environment(child_environment(self.env_from, python=True, accelerators=True))
        environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        self.tell(f"{self.study.name}: {name} {what}")
        running = list[subprocess.Popen[bytes]]()

        def note(process: subprocess.Popen[bytes]) -> None:
            running.append(process)
            with self._guard:
                self._running.add(process)
                if self._stopped:
                    process.terminate()

        with self._guard:
            if self._stopped:
                raise StudyFailed("the study was stopped")
        try:
            # In a session of its own: Ctrl-C reaches the study alone, which asks each training once to end.
            done = run_bounded(command, env=environment, most=_PRINTED_BYTES, new_session=True, on_start=note)
        except TooMuchOutput as error:
            raise StudyFailed(f"{self.study.name}: {name} {what} printed {error}") from None
        finally:
            with self._guard:
                self._running.difference_update(running)
        if done.code:
            raise StudyFailed(f"{self.study.name}: {name} {what} failed ({done.code}):\n{done.errors[-3000:]}")
        found: dict[str, Any] = json.loads(done.output)
        return found

    def stop(self) -> None:
        """Ask all trainings under way to write a checkpoint and end."""
        with self._guard:
            self._stopped = True
            for running in self._running:
                running.terminate()


def _taught(recipe: str, given: Sequence[str]) -> str:
    """Equal for settings that teach the same: what only reinforcement and evaluation read is left out."""
    data = load_config(recipe, given).resolved()
    for section in ("reward", "algorithm", "logging"):
        del data[section]
    for section, keys in (("trainer", ("output", "rl", "eval")), ("tasks", ("eval",))):
        for key in keys:
            del data[section][key]
    return _hash(data)


def _hash(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]


def _measured(path: Path, key: str) -> dict[str, Any]:
    """The result of an arm that is done already.

    Raises:
        StudyFailed: it was made with other settings.
    """
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if found.get("made_with") != key:
        raise StudyFailed(
            f"{path}: made with other settings than those that are asked for; remove {path.parent}, or give another "
            "--output"
        )
    return found


def _training(folder: Path) -> dict[str, float]:
    """What the steps of reinforcement learning took: tokens that were sampled, CPU-seconds of all processes."""
    from concertino_train.running.metrics import read_metrics

    lines = list(read_metrics(folder / "metrics.jsonl"))
    named = {"sampled_tokens": "sampled", "learning_cpu_seconds": "cpu_seconds"}
    return {name: sum(float(line.get(key, 0.0)) for line in lines) for name, key in named.items()}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
