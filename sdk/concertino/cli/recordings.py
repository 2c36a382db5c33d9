"""`--record` and `--replay` of `concertino run`: answers of calls and models, kept in a file and given again."""

from __future__ import annotations

from contextlib import suppress
from errno import EACCES, ENOTDIR
from os import O_APPEND, O_CREAT, O_WRONLY, W_OK, X_OK, access, close, strerror
from pathlib import Path
from typing import TYPE_CHECKING

from concertino.core.errors import UsageError
from concertino.core.private_files import open_private

if TYPE_CHECKING:
    from concertino.pool.pool import Pool
    from concertino.testing import Recorder


def open_recording(record: Path | None, replay: Path | None) -> Recorder | None:
    """The recording that was asked for, None for none.

    Raises:
        UsageError: both were asked for; the file cannot be read, or cannot be written. Nothing has run.
    """
    if record is not None and replay is not None:
        raise UsageError("--record and --replay exclude each other; record first, then replay")
    path = record or replay
    if path is None:
        return None
    if replay is not None and not replay.is_file():
        raise UsageError(f"--replay {replay}: recording not found; make it with the same command and --record {replay}")
    if record is not None:
        _check_writable(record)
    from concertino.testing import Recorder

    # What is left of the time is shown to the model, and differs from run to run.
    return Recorder(path, "record" if record else "replay", mask=[r'"seconds": [0-9.]+'])


def recorded(pool: Pool, recording: Recorder) -> Pool:
    """The pool with every model seen through a recording."""
    from concertino.core.model import Model

    for spec in pool.models:
        # In a replay nothing real is asked, and a provider's factory may want a key that CI does not have.
        real = Model if recording.mode == "replay" else spec.factory
        # The lambda's defaults bind now; the loop's variables would be those of the last model.
        pool = pool.replace(
            spec.name, spec.with_(factory=lambda real=real, name=spec.name: recording.model(real(), name))
        )
    return pool


def _check_writable(path: Path) -> None:
    """A file that cannot be written would show as a failure of the first model that is paid."""
    there = path.exists()
    try:
        if path.parent.is_dir():
            close(open_private(path, O_WRONLY | O_CREAT | O_APPEND))
        else:
            # The recording makes its folder with the first answer; the nearest one decides whether it can.
            near = next(place for place in path.absolute().parents if place.exists())
            if not near.is_dir():
                raise NotADirectoryError(ENOTDIR, strerror(ENOTDIR))
            if not access(near, W_OK | X_OK):
                raise PermissionError(EACCES, strerror(EACCES))
    except OSError as error:
        raise UsageError(f"--record {path}: cannot be written: {error.strerror}; give another file") from None
    if not there:
        with suppress(OSError):
            path.unlink()
