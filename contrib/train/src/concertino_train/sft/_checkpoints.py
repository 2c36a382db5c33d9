"""Checkpoints of a teaching: which is whole, and which training it belongs to."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from concertino_train.codec import Codec
from concertino_train.data import Encoded

from ._settings import SftSettings

STATE = "sft.json"
"""Written last into a checkpoint: with it, the checkpoint is whole."""
_MAY_DIFFER = (
    "out", "data", "model", "steps", "epochs", "save_every", "keep", "log_every", "evaluate_every", "resume", "force",
    "device",
)  # fmt: skip
"""Settings that a training may go on without."""


def identity_of(settings: SftSettings, codec: Codec, rows: Sequence[Encoded]) -> str:
    """Equal for trainings that may go on from each other's checkpoints."""
    said = {name: value for name, value in asdict(settings).items() if name not in _MAY_DIFFER}
    digest = hashlib.sha256(json.dumps([said, codec.fingerprint], sort_keys=True, default=str).encode())
    for row in rows:
        digest.update(json.dumps([row.ids, row.labels]).encode())
    return digest.hexdigest()[:16]


def latest_checkpoint(settings: SftSettings) -> Path | None:
    """The newest whole checkpoint of a training; None if there is none."""
    whole = [path for path in _oldest_first(Path(settings.out) / "checkpoints") if (path / STATE).is_file()]
    return whole[-1] if whole else None


def prune(folder: Path, keep: int) -> None:
    """Remove all but the newest whole checkpoints, and what crashes left before them."""
    found = _oldest_first(folder)
    whole = [path for path in found if (path / STATE).is_file()]
    for path in found[: found.index(whole[-1])] if whole else ():
        if path not in whole[-keep:]:
            (path / STATE).unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)


def _oldest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
