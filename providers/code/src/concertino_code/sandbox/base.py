"""The one interface of every sandbox, local or remote, and the two ways in which one fails.

    async with open_sandbox() as sandbox:
        done = await sandbox.run("print(6 * 7)")
        done.ok, done.stdout.text           # True, "42\\n"

Invariant: what the script does, however badly, is an `ScriptOutcome`. An exception is only ever about the sandbox.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Self

from .limits import ScriptLimits
from .outcome import ScriptOutcome


class SandboxFault(Exception):
    """The sandbox failed, not the script; running it again is safe unless `executed`.

    Attributes:
        executed: the script may have run, and may have had an effect outside (the network was allowed).
    """

    def __init__(self, message: str, *, executed: bool = False) -> None:
        super().__init__(message)
        self.executed = executed


class SandboxUnavailable(SandboxFault):
    """This machine, or this service, offers no sandbox that was asked for. Trying again will not help."""


@dataclass(frozen=True, slots=True)
class Script:
    """What one execution runs, checked: see `Sandbox.run`."""

    code: bytes
    limits: ScriptLimits
    stdin: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)
    artefacts: Sequence[str] = ()
    seed: int | None = None


class Sandbox(ABC):
    """Runs Python scripts, each in a world of its own that ends with it."""

    level = ""
    """What kind it is, in one word: `namespaces`, `landlock`, `docker` and so on."""
    limits: ScriptLimits
    """Of an execution that names none."""

    async def run(
        self,
        code: str,
        *,
        limits: ScriptLimits | None = None,
        stdin: str | bytes = b"",
        files: Mapping[str, bytes | str] | None = None,
        artefacts: Sequence[str] = (),
        seed: int | None = None,
    ) -> ScriptOutcome:
        """Run a script as `python main.py` in an empty folder. Cancelling it kills the script at once.

        Args:
            code: the script.
            limits: of this execution, by default the sandbox's own.
            stdin: what the script may read from its standard input.
            files: put into the folder before, by relative name.
            artefacts: relative names of files to give back.
            seed: of `random` and `numpy.random`; without one, each execution has its own randomness.

        Raises:
            SandboxFault: the sandbox failed.
            ValueError: a name of a file leaves the folder, or there is too much to send.
        """
        named = {_check_name(name): _to_bytes(content) for name, content in (files or {}).items()}
        wanted = [_check_name(name) for name in artefacts]
        return await self.execute(Script(_to_bytes(code), limits or self.limits, _to_bytes(stdin), named, wanted, seed))

    @abstractmethod
    async def execute(self, script: Script) -> ScriptOutcome:
        """Run a checked script; raises as `run` does."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What a script can and cannot do here, for the one who writes scripts."""

    async def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Release everything. May be called twice."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _check_name(name: str) -> str:
    """A relative file name that stays in the folder.

    Raises:
        ValueError: says what is wrong with it.
    """
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts or len(name) > 255:
        raise ValueError(f"file name {name!r}; expected a relative name such as 'data/in.csv', without '..'")
    return path.as_posix()


def _to_bytes(content: bytes | str) -> bytes:
    """Text as UTF-8; lone surrogates stay what they are."""
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
