"""Checkpoints that hold everything: weights, optimiser and schedule by transformers, all else in one JSON file.

Folders are named `checkpoint-N`, N the optimiser step. The JSON file is removed before a checkpoint is written again,
and written last, in one step. So the invariant: a folder with a readable file is complete; without, it is what a crash
left, and nothing resumes from it. A complete checkpoint is removed only when a newer one is complete, its file first.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from concertino import UsageError

from .files import write_atomically

FILE = "concertino.json"
FORMAT = 1
_NAME = re.compile(r"checkpoint-(\d+)")


@runtime_checkable
class StatefulPart(Protocol):
    """Something whose state belongs in checkpoints: a sampler's buffer, a counter, a random generator."""

    def state_dict(self) -> Mapping[str, Any]:
        """Everything that has to be the same after resuming, as plain JSON data."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        """Continue from a state."""


def step_of(path: Path) -> int:
    """The optimiser step in the name of a checkpoint's folder; -1 for a folder of another name."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else -1


def all_checkpoints(folder: Path | str) -> list[Path]:
    """All checkpoints in a folder, complete or not, oldest first."""
    if not Path(folder).is_dir():
        return []
    return sorted((path for path in Path(folder).iterdir() if step_of(path) >= 0 and path.is_dir()), key=step_of)


def complete_checkpoints(folder: Path | str) -> list[Path]:
    """All complete checkpoints in a folder, oldest first."""
    return [path for path in all_checkpoints(folder) if _is_complete(path)]


def latest_checkpoint(folder: Path | str) -> Path | None:
    """The newest complete checkpoint in a folder; None if there is none."""
    found = complete_checkpoints(folder)
    return found[-1] if found else None


def read_state(checkpoint: Path | str) -> dict[str, Any]:
    """The JSON file of a checkpoint.

    Raises:
        UsageError: it is not complete, or of another format.
    """
    path = Path(checkpoint) / FILE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        newest = latest_checkpoint(Path(checkpoint).parent)
        hint = f"the newest complete one is {newest}" if newest else "there is no complete one in its folder"
        fault = "is not there" if isinstance(error, FileNotFoundError) else str(error)
        raise UsageError(f"{checkpoint} is not a complete checkpoint ({FILE}: {fault}); {hint}") from error
    if not isinstance(state, dict):
        raise UsageError(f"{path}: it holds {type(state).__name__}, expected a table; resume from another checkpoint")
    if state.get("format") != FORMAT:
        raise UsageError(f"{path}: format {state.get('format')!r}; this version reads {FORMAT}")
    return dict(state)


def begin_state(checkpoint: Path) -> None:
    """Mark a folder that is about to be written as incomplete."""
    (checkpoint / FILE).unlink(missing_ok=True)


def write_state(checkpoint: Path, step: int, state: Mapping[str, Any]) -> None:
    """Make a checkpoint complete.

    Args:
        checkpoint: its folder.
        step: the optimiser step in its name.
        state: all else, as plain JSON data.

    Raises:
        UsageError: the state of a part is not JSON data.
    """
    try:
        # NaN is no JSON, and other readers would refuse the file.
        text = json.dumps({"format": FORMAT, "optimizer_step": step, **state}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the state for {checkpoint} is not JSON data: {error}; see StatefulPart.state_dict"
        ) from error
    checkpoint.mkdir(parents=True, exist_ok=True)
    write_atomically(checkpoint / FILE, text)


def refuse_other(
    checkpoint: Path | str, saved: Mapping[str, str], own: Mapping[str, str], accepted: Collection[str]
) -> None:
    """Refuse a checkpoint of another training.

    Args:
        checkpoint: for the message.
        saved: fingerprints that it was made with, by name.
        own: those of this training.
        accepted: names that may differ.

    Raises:
        UsageError: something differs; names it, both values, and how to resume nevertheless.
    """
    # Names of either side: one that was left out is a difference, too.
    differing = [name for name in {**saved, **own} if saved.get(name) != own.get(name) and name not in accepted]
    if differing:
        said = "; ".join(f"{name} was {saved.get(name)!r} and is {own.get(name)!r}" for name in differing)
        raise UsageError(
            f"{checkpoint} is of another training: {said}. Start in another folder, or resume nevertheless with "
            f"--force (accept_changed={tuple(differing)!r})"
        )


def prune(folder: Path | str, keep: int) -> None:
    """Remove all but the newest complete checkpoints, and what crashes left before them.

    Args:
        folder: with `checkpoint-N` in it.
        keep: how many are kept; 0 keeps all.
    """
    complete = complete_checkpoints(folder)
    kept = complete[-keep:] if keep else complete
    for path in all_checkpoints(folder):
        # A newer folder without a state may be one that is being written.
        if complete and step_of(path) < step_of(complete[-1]) and path not in kept:
            begin_state(path)
            shutil.rmtree(path, ignore_errors=True)


def _is_complete(path: Path) -> bool:
    try:
        state = json.loads((path / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(state, dict) and state.get("format") == FORMAT and state.get("optimizer_step") == step_of(path)
