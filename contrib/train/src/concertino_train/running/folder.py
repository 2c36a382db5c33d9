"""The folder of a training: what is where, who may write, and whether the training may be resumed.

    out/config.yaml       the settings, whole
    out/metrics.jsonl     figures by step
    out/plot.svg          the same as curves
    out/traces/           rollouts of some steps
    out/checkpoints/      to resume from
    out/journals/         rollouts under way that are played ahead, to resume from
    out/model/            the trained model
    out/audit.json        what the audit found before the first step
    out/result.json       the command's result, with the figures of the trained weights

The invariant: one process group writes at a time; and a folder is resumed only by the training that began it, unless
`--force` is given.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from concertino import UsageError
from filelock import FileLock, Timeout

from concertino_train.config.config import TrainConfig, load_config

from .files import write_atomically


def clean_folder(path: Path) -> Path:
    """An empty folder; what was in it is gone."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


class TrainingFolder:
    """Opens the folder of a training and locks it.

    Args:
        path: of the folder.
        config: of the training.
        resume: continue the training that is there; a folder that is not there yet is begun.
        restart: start over where a training has begun; its results are removed.
        force: continue although the settings differ.
        leader: whether this process writes; the others of a distributed training do not.

    Attributes:
        resumes: there is a training to continue.
        config_file, metrics, plot, traces, checkpoints, journals, model, audit, result: paths in it, as above.

    Raises:
        UsageError: another process holds it, it holds a training that has begun, or one of other settings; or both
            `resume` and `restart` are asked for.
    """

    def __init__(
        self,
        path: str | Path,
        config: TrainConfig,
        *,
        resume: bool = False,
        restart: bool = False,
        force: bool = False,
        leader: bool = True,
    ) -> None:
        if resume and restart:
            raise UsageError("give either --resume or --restart, not both")
        self.path = home = Path(path)
        self.config_file, self.metrics, self.plot = home / "config.yaml", home / "metrics.jsonl", home / "plot.svg"
        self.traces, self.checkpoints, self.model = home / "traces", home / "checkpoints", home / "model"
        self.journals = home / "journals"
        self.audit, self.result = home / "audit.json", home / "result.json"
        self.resumes = resume and self.config_file.exists()
        self._lock = FileLock(home / ".lock", blocking=False)
        # Only the leader locks: the ranks of one training share its folder.
        if not leader:
            return
        home.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            raise UsageError(
                f"another process trains in {home}; wait for it, or choose another folder (--output)"
            ) from None
        try:
            self._admit(config, resume, restart, force)
        # A refused training must not keep the folder locked while its process lives on.
        except BaseException:
            self.close()
            raise

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write the result, completely or not at all."""
        write_atomically(self.result, json.dumps(result, indent=2, ensure_ascii=False) + "\n")

    def _admit(self, config: TrainConfig, resume: bool, restart: bool, force: bool) -> None:
        if self._begun() and not resume and not restart:
            raise UsageError(
                f"{self.path} holds a training already; continue it (--resume), start over (--restart), or choose "
                "another folder (--output)"
            )
        if not resume and (restart or self.config_file.exists()):
            self._clear()
        if self.resumes and not force:
            changed = load_config(self.config_file, check=False, trusted=True).changes(config)  # nothing is made of it
            if changed:
                told = "; ".join(f"{key}: {was!r}, now {now!r}" for key, (was, now) in list(changed.items())[:4])
                raise UsageError(
                    f"{self.path} was trained with other settings ({told}); use those, another folder, or --force to "
                    "continue nevertheless"
                )
        write_atomically(self.config_file, config.text())

    def _begun(self) -> bool:
        """Whether anything would be lost: steps, checkpoints or weights. A refused training leaves settings alone."""
        steps = self.metrics.exists() and self.metrics.stat().st_size > 0
        return steps or self.model.exists() or any(self.checkpoints.glob("checkpoint-*"))

    def _clear(self) -> None:
        """Remove what an earlier training left, and nothing else; last of all its settings, by which it is known."""
        for folder in (self.traces, self.checkpoints, self.journals, self.model):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.metrics, self.plot, self.audit, self.result, self.config_file):
            file.unlink(missing_ok=True)

    def close(self) -> None:
        """Unlock the folder. May be called again."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
