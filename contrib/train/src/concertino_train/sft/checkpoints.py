"""Checkpoints of a teaching: which is whole, and which training it belongs to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from concertino_train.codec import Codec
from concertino_train.data.encoding import Encoded
from concertino_train.running.checkpoints import numbered

from .settings import SftSettings

STATE = "sft.json"
"""Written last into a checkpoint: with it, the checkpoint is whole."""
_MAY_DIFFER = (
    "out",
    "data",
    "model",
    "steps",
    "epochs",
    "save_every",
    "keep",
    "log_every",
    "evaluate_every",
    "resume",
    "force",
    "device",
)
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
    found = [path for path in numbered(Path(settings.out) / "checkpoints") if is_whole(path)]
    return found[-1] if found else None


def is_whole(checkpoint: Path) -> bool:
    """Whether it was written to its end."""
    return (checkpoint / STATE).is_file()
