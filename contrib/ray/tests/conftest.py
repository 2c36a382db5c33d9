"""Ray comes from an environment of its own, and its clusters have several nodes on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino_ray.cluster import loopback_settings
from servers import RAY, Absent

_STARTS = 10
SUPPORT = Path(__file__).parents[3] / "tests" / "support"


@pytest.fixture(scope="session")
def ray_paths() -> Iterator[list[str]]:
    """Ray can be imported, here and in what is started; else the test is skipped with the reason."""
    paths = []
    if importlib.util.find_spec("ray") is None:
        try:
            home = RAY.python().parent.parent
        except Absent as absent:
            pytest.skip(str(absent))
        paths += map(str, home.glob("lib/python*/site-packages"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, *paths])
        patch.setenv("PYTHONPATH", os.pathsep.join([*paths, str(SUPPORT)]))
        yield paths


class Nodes:
    """A cluster of simulated nodes, to which this process is connected. The first one stays."""

    def __init__(self, count: int, folder: Path, cpus: int = 1) -> None:
        import ray
        from ray.cluster_utils import Cluster

        self._settings = loopback_settings(folder)
        options = self._settings.__enter__()
        self._store = {"object_store_memory": options["object_store_memory"]}
        (folder / "ray").mkdir(exist_ok=True)
        self._patch = pytest.MonkeyPatch()
        for name in ("ACME_API_KEY", "OTHER_API_KEY"):
            self._patch.setenv(name, "sesame")
        self._patch.setenv("RAY_TMPDIR", str(folder))  # Ray's simulated clusters know no other way
        head = {**options, "num_cpus": cpus}
        self.cluster: Any = Cluster(initialize_head=True, head_node_args=head)
        ray.init(address=self.address, log_to_driver=False)
        self.others: list[Any] = []
        for _ in range(count - 1):
            self.add()

    @property
    def address(self) -> str:
        """HOST:PORT of the head."""
        return str(self.cluster.address)

    def add(self) -> None:
        """One more node. Only in the main thread, whose signal handlers Ray sets."""
        for _ in range(_STARTS):
            try:
                self.others.append(self.cluster.add_node(num_cpus=1, wait=False, **self._store))
            except Exception as error:
                # Ray waits for 30 s, which cannot be set, and on a busy machine a node takes longer.
                if "timed out during startup" not in str(error):
                    raise
            else:
                return
        raise TimeoutError(f"no node began within {_STARTS} x 30 s")

    def kill(self, place: int = 0) -> None:
        """Kill all processes of a node."""
        self.cluster.remove_node(self.others.pop(place), allow_graceful=False)

    def close(self) -> None:
        """Kill what is left."""
        import ray

        ray.shutdown()
        self.cluster.shutdown()
        self._patch.undo()
        self._settings.__exit__(None, None, None)


@pytest.fixture(scope="session")
def short_folder() -> Iterator[Path]:
    """A folder for Ray's sockets, whose paths must be short."""
    folder = Path(tempfile.mkdtemp(prefix="ct-ray-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def nodes(ray_paths: list[str], short_folder: Path) -> Iterator[Nodes]:
    """Three nodes with one worker each."""
    found = Nodes(3, short_folder)
    yield found
    found.close()
