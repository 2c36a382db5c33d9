"""A folder of traces: list them, find one by the beginning of its id.

concertino.toml `traces = "…"`, else the environment variable CONCERTINO_TRACES, else `.concertino/traces`
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from concertino.core.errors import TraceError, UsageError

from .blobs import BlobStore
from .fence import forget_epochs
from .index import index_of
from .overview import Overview
from .sink import SUFFIX
from .trace import Summary, Trace

POSITIONS = ".otlp"
"""How files end in which concertino-otel keeps how far a trace was sent."""
REQUEST, TOLD = ".request", ".told"
"""How files end in which concertino-serve keeps what was asked, and the pieces of an answer that were told."""


def default_folder() -> Path:
    """Where the command line keeps traces."""
    from concertino.core.settings import load_settings

    return load_settings().trace_folder


class TraceStore:
    """The traces in a folder, newest first.

    Raises:
        UsageError: the folder is not a path.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        if not isinstance(folder, str | Path | None):
            raise UsageError(f"folder={folder!r}: expected the path of a folder of traces, such as 'traces'")
        self.folder = Path(folder) if folder is not None else default_folder()

    def path_for(self, run_id: str) -> Path:
        """Where a run's trace goes."""
        return self.folder / f"{run_id}{SUFFIX}"

    def paths(self) -> list[Path]:
        """All trace files, newest first."""
        ages = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with suppress(OSError):  # somebody deletes traces meanwhile, or a link leads nowhere
                ages.append((path.stat().st_mtime, path.name, path))
        return [path for *_, path in sorted(ages, reverse=True)]

    def find(self, name: str) -> Path:
        """A trace by path, by the beginning of its run id, or `last`.

        Raises:
            TraceError: none or several fit.
        """
        if Path(name).is_file():
            return Path(name)
        paths = self.paths()
        if name == "last" and paths:
            return paths[0]
        fitting = [path for path in paths if path.name.startswith(name)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            ids = ", ".join(path.name.removesuffix(SUFFIX) for path in fitting[:4])
            raise TraceError(f"{name!r} fits several traces in {self.folder}: {ids}; give more of the id")
        if not self.folder.is_dir():
            raise TraceError(f"{self.folder}: folder not found, so no trace {name!r}; `concertino run` writes traces")
        raise TraceError(
            f"there is no trace {name!r} in {self.folder}; see `concertino traces list --folder {self.folder}`"
        )

    def delete(self, run_id: str) -> None:
        """Remove the trace of a run with its side files. A run without a trace is no error."""
        path = self.path_for(run_id)
        BlobStore(path).delete()
        path.unlink(missing_ok=True)
        forget_epochs(path)
        index_of(path).unlink(missing_ok=True)
        for ending in (POSITIONS, REQUEST, TOLD):
            path.with_name(path.name + ending).unlink(missing_ok=True)

    def load(self, name: str) -> Trace:
        """Read a trace by path, id or `last`."""
        return Trace.load(self.find(name))

    def summaries(self, limit: int | None = None) -> list[Summary | TraceError]:
        """One line per trace; a file that cannot be read gives its error instead."""
        lines: list[Summary | TraceError] = []
        for path in self.paths()[:limit]:
            try:
                lines.append(Overview.of(path).summary)
            except TraceError as error:
                lines.append(error)
        return lines
