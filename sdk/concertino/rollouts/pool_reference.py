"""A pool for another process: the file to load it from, and what it must be then.

A pool is never sent itself: it holds functions, clients and keys. It is loaded there from its file, or from one that
was written for this, and compared member by member. The text of a file that was written for this goes along, for a
machine that does not have it; a file of its own names its neighbours, and must be there.

Invariant: a process works on the very pool that was meant, or says what differs and does nothing. A pool file that
changed meanwhile is not even read, for loading one may start programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from concertino.core.errors import PoolError
from concertino.pool.file import digest_of
from concertino.pool.lock import differences_from, lock_of
from concertino.pool.pool import Pool

_SHOWN = 6
"""Differences that an error names."""


@dataclass(frozen=True)
class PoolReference:
    """Where a pool is loaded from, and what it must be.

    Attributes:
        file: a pool file.
        digest: SHA-256 of the file.
        lock: id of the pool, versions of its distributions, and a fingerprint of each member.
        text: of a file that was written for this; else empty.
    """

    file: str
    digest: str
    lock: Mapping[str, Any]
    text: str = ""

    @classmethod
    def of(cls, pool: Pool, folder: Path) -> PoolReference:
        """The reference of a pool: its own file, else one that is written.

        Args:
            folder: where a file is written.

        Raises:
            PoolError: the pool holds what no file can hold, such as a function of this program.
        """
        path, digest = pool.file or (folder / f"{pool.id}.toml", "")
        text = ""
        if not digest:
            try:
                pool.save(path)
            except PoolError as error:
                said = str(error).removeprefix(f"{path}: ")
                raise PoolError(
                    f"the pool cannot be sent to another process, which loads it by names: {said}"
                ) from error
            digest, text = digest_of(path), path.read_text(encoding="utf-8")
        return cls(str(path), digest, lock_of(pool), text)

    def load(self) -> Pool:
        """The pool, in this process.

        Raises:
            PoolError: it is another one here, or its file changed; says what differs.
        """
        path = Path(self.file)
        if self.text and not path.exists():
            with TemporaryDirectory(prefix="concertino-pools-") as folder:
                path = Path(folder, path.name)
                path.write_text(self.text, encoding="utf-8")
                return self._loaded(path)
        return self._loaded(path)

    def _loaded(self, path: Path) -> Pool:
        try:
            here = digest_of(path)
        except OSError as error:
            raise PoolError(f"{path}: the pool file cannot be read here: {error.strerror or error}") from error
        if here != self.digest:
            raise PoolError(f"{path}: the pool file has changed since it was loaded; begin again with the new one")
        pool = Pool.load(path)
        if differences := differences_from(dict(self.lock), pool):
            more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
            raise PoolError(f"{path}: the pool is another one here: {'; '.join(differences[:_SHOWN])}{more}")
        return pool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PoolReference:
        """The inverse of `to_json`."""
        return cls(data["file"], data["digest"], data["lock"], data.get("text", ""))
