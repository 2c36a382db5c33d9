"""What is known of a server: how its start comes along, how it is, where it is, and what it was given since."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

State = Literal["idle", "starting", "ready", "stopping"]


@dataclass(frozen=True)
class StartProgress:
    """How far a start has come.

    Attributes:
        model: what is being served.
        seconds: since the start.
        limit: seconds it may take.
        line: the last line of the log.
    """

    model: str
    seconds: float
    limit: float
    line: str

    def __str__(self) -> str:
        return (
            f"starting vLLM with {self.model}: {self.seconds:.0f} of {self.limit:.0f} s; {self.line or 'no output yet'}"
        )


@dataclass(frozen=True)
class ServerHealth:
    """How a server is.

    Attributes:
        ok: it answers.
        state: idle, starting, ready or stopping.
        url: its address, "" unless it is ready.
        pid: its process, 0 if there is none or it is somebody else's.
        log: its log, "" likewise.
        message: what is wrong, "" if nothing is.
    """

    ok: bool
    state: State
    url: str = ""
    pid: int = 0
    log: str = ""
    message: str = ""


class ServerAddress(NamedTuple):
    """A server that is ready: its address without `/v1`, its name for the model, and what that was loaded from."""

    url: str
    model: str
    root: str = ""


@dataclass
class ServedState:
    """What the server was given since it started; a new start gives it again.

    Attributes:
        version: of the weights.
        weights: the folder of the weights; None for those it starts with.
        sent: the weights came as tensors, and are in no folder: a new start cannot give them again.
        adapters: folder and version of adapters loaded later, by the name that the server knows.
        current: the newest of these names, by the adapter's plain name.
        broken: why nothing may answer, "" if all is well.
        states: the folder of weights that were written for it, if there are any.
    """

    version: int = 0
    weights: Path | None = None
    sent: bool = False
    adapters: dict[str, tuple[Path, int]] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    broken: str = ""
    states: Path | None = None

    def restarted(self) -> None:
        """Note that the server is a new process, with the weights that it starts with."""
        if self.sent:
            self.broken = (
                f"nothing answers: the server was started anew, and the weights of version {self.version} were sent "
                "to the one before it and are in no folder; load_weights() them again"
            )

    def new_folder(self) -> Path:
        """An empty folder for weights that are only needed here; removed with all others by `discard`."""
        if self.states is None:
            self.states = Path(tempfile.mkdtemp(prefix="concertino-weights-"))
            _state_folders.add(self.states)
        return Path(tempfile.mkdtemp(dir=self.states))

    def discard(self) -> None:
        """Remove the folders that were written for the server."""
        if self.states is not None:
            shutil.rmtree(self.states, ignore_errors=True)
            _state_folders.discard(self.states)


_state_folders: set[Path] = set()


@atexit.register
def _remove_state_folders() -> None:
    for folder in _state_folders:
        shutil.rmtree(folder, ignore_errors=True)


def leave_state_folders_to_parent() -> None:
    """In a forked child: the folders are the parent's."""
    _state_folders.clear()
