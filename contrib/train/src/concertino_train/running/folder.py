"""The folder of a training: what is where, who may write, and whether it may be gone on with.

    out/config.yaml       the settings, whole
    out/metrics.jsonl     figures by step
    out/plot.svg          the same as curves
    out/traces/           rollouts of some steps
    out/checkpoints/      to go on from
    out/model/            what came of it
    out/audit.json        what the audit found before the first step
    out/result.json       what the command said in the end, with the figures of the weights that came of it

The invariant: one process group writes at a time; and a folder goes on only with the training that it was made by,
unless somebody insists.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from concertino import UsageError

from concertino_train.config.config import TrainConfig, load_config


def clean_folder(path: Path) -> Path:
    """An empty folder; what was in it is gone."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


class TrainingFolder:
    """Opens the folder of a training and holds it.

    Args:
        path: of the folder.
        config: of the training.
        resume: go on with what is there; a folder that is not there yet is begun.
        restart: begin anew where a training has begun; what came of it is removed.
        force: go on although the settings are others.
        leader: whether this process writes; the others of a distributed training do not.

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
            raise UsageError("either go on (--resume) or begin anew (--restart), not both")
        self.path = Path(path)
        self.resumes = resume and self.config_file.exists()
        self._lock = -1
        if not leader:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        self._hold()
        try:
            self._admit(config, resume, restart, force)
        except BaseException:
            self.close()
            raise

    # -- what is where -------------------------------------------------------------------------------------------------

    @property
    def config_file(self) -> Path:
        """The settings."""
        return self.path / "config.yaml"

    @property
    def metrics(self) -> Path:
        """Figures by step."""
        return self.path / "metrics.jsonl"

    @property
    def plot(self) -> Path:
        """Curves."""
        return self.path / "plot.svg"

    @property
    def traces(self) -> Path:
        """Rollouts."""
        return self.path / "traces"

    @property
    def checkpoints(self) -> Path:
        """To go on from."""
        return self.path / "checkpoints"

    @property
    def model(self) -> Path:
        """What came of it."""
        return self.path / "model"

    @property
    def audit(self) -> Path:
        """What the audit found."""
        return self.path / "audit.json"

    @property
    def result(self) -> Path:
        """What the command said in the end."""
        return self.path / "result.json"

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write what came of it, whole or not at all."""
        self._write(self.result, json.dumps(result, indent=2, ensure_ascii=False) + "\n")

    # -- who may -------------------------------------------------------------------------------------------------------

    def _hold(self) -> None:
        self._lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = -1
            raise UsageError(
                f"another process trains in {self.path}; wait for it, or choose another folder (--output)"
            ) from None

    def _admit(self, config: TrainConfig, resume: bool, restart: bool, force: bool) -> None:
        if self._begun() and not resume and not restart:
            raise UsageError(
                f"{self.path} holds a training already; go on with it (--resume), begin anew (--restart), or choose "
                "another folder (--output)"
            )
        if not resume and (restart or self.config_file.exists()):
            self._clear()
        if self.resumes and not force:
            changed = load_config(self.config_file).changes(config)
            if changed:
                told = "; ".join(f"{key}: {was!r}, now {now!r}" for key, (was, now) in list(changed.items())[:4])
                raise UsageError(
                    f"{self.path} was trained with other settings ({told}); use those, another folder, or --force to "
                    "go on nevertheless"
                )
        self._write(self.config_file, config.text())

    def _write(self, file: Path, text: str) -> None:
        unfinished = self.path / f".{file.stem}.{os.getpid()}"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(file)

    def _begun(self) -> bool:
        """Whether anything would be lost: steps, checkpoints or weights. Settings alone are what a refusal leaves."""
        steps = self.metrics.exists() and self.metrics.stat().st_size > 0
        return steps or self.model.exists() or any(self.checkpoints.glob("checkpoint-*"))

    def _clear(self) -> None:
        """Remove what an earlier training left, and nothing else; last of all its settings, by which it is known."""
        for folder in (self.traces, self.checkpoints, self.model):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.metrics, self.plot, self.audit, self.result, self.config_file):
            file.unlink(missing_ok=True)

    def close(self) -> None:
        """Let others write. May be called again."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
