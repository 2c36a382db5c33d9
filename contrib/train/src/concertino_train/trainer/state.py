"""Checkpoints that hold everything: weights, optimiser and schedule by transformers, all else in one JSON file.

The file is written last, under another name that is then changed, and removed before a checkpoint is written again. So
the invariant: a checkpoint folder with a readable file is complete; without, it is what a crash left, and nobody goes
on from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from concertino import UsageError

from concertino_train.running.checkpoints import number_of, numbered
from concertino_train.running.checkpoints import prune as prune_numbered

FILE = "concertino.json"
FORMAT = 1


@runtime_checkable
class StatefulPart(Protocol):
    """Something whose state belongs into checkpoints: a sampler's buffer, a counter, a random generator."""

    def state_dict(self) -> Mapping[str, Any]:
        """Everything that has to be the same after resuming, as plain JSON data."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        """Go on from there."""


def latest_checkpoint(folder: Path | str) -> Path | None:
    """The newest complete checkpoint in a folder; None if there is none.

    Args:
        folder: with `checkpoint-N` in it.
    """
    found = complete_checkpoints(folder)
    return found[-1] if found else None


def complete_checkpoints(folder: Path | str) -> list[Path]:
    """All complete checkpoints in a folder, oldest first."""
    return [path for path in numbered(folder) if _complete(path)]


def read_state(checkpoint: Path | str) -> dict[str, Any]:
    """What stands in the file of a checkpoint.

    Raises:
        UsageError: it is not complete, or of another format.
    """
    path = Path(checkpoint) / FILE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        others = complete_checkpoints(Path(checkpoint).parent)
        hint = f"the newest complete one is {others[-1]}" if others else "there is no complete one beside it"
        raise UsageError(f"{checkpoint} is no complete checkpoint ({path.name}: {_short(error)}); {hint}") from error
    if state.get("format") != FORMAT:
        raise UsageError(f"{path}: format {state.get('format')!r}; this version reads {FORMAT}")
    return dict(state)


def begin_state(checkpoint: Path) -> None:
    """Mark a folder that is about to be written as not complete."""
    (checkpoint / FILE).unlink(missing_ok=True)


def write_state(checkpoint: Path, state: Mapping[str, Any]) -> None:
    """Make a checkpoint complete.

    Raises:
        UsageError: the state of a part is no JSON data.
    """
    try:
        text = json.dumps({"format": FORMAT, **state}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the state for {checkpoint} is no JSON data: {error}; see StatefulPart.state_dict") from error
    checkpoint.mkdir(parents=True, exist_ok=True)
    temporary = checkpoint / f".{FILE}.part"
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(checkpoint / FILE)


def refuse_other(
    checkpoint: Path | str, saved: Mapping[str, str], own: Mapping[str, str], accepted: Collection[str]
) -> None:
    """Refuse a checkpoint of another training.

    Args:
        checkpoint: for the message.
        saved: what it was made with: fingerprints by name.
        own: what this training is made with.
        accepted: names that may differ.

    Raises:
        UsageError: something differs; names it, both values, and how to go on all the same.
    """
    differing = [name for name in {**saved, **own} if saved.get(name) != own.get(name) and name not in accepted]
    if differing:
        said = "; ".join(f"{name} was {saved.get(name)!r} and is {own.get(name)!r}" for name in differing)
        raise UsageError(
            f"{checkpoint} is of another training: {said}. Begin anew in another folder, or go on all the same with "
            f"--force (accept_changed={tuple(differing)!r})"
        )


def prune(folder: Path | str, keep: int) -> None:
    """Remove all but the newest complete checkpoints, and what crashes left before them.

    Args:
        folder: with `checkpoint-N` in it.
        keep: how many are kept; 0 keeps all.
    """
    prune_numbered(folder, keep, FILE, _complete)


def _complete(path: Path) -> bool:
    try:
        state = json.loads((path / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(state, dict) and state.get("format") == FORMAT and state.get("optimizer_step") == number_of(path)


def _short(error: Exception) -> str:
    return "is not there" if isinstance(error, FileNotFoundError) else str(error)
