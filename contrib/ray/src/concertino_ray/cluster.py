"""The connection to a cluster, or one that is begun on this machine.

Invariant: nothing is left of a cluster that was begun here: no process, no file. It listens on this machine alone,
sends nothing about itself to anybody, and has none of the keys of this process but those that were named.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence

from concertino.core.child_environment import only_child_environment
from concertino.rollouts import RolloutsError

from .words import Cluster

_STORE = 80 << 20
"""Bytes of the object store of a cluster on this machine, about the least that Ray takes: results do not go there."""
_QUICK = {
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE": "1",
}
"""A dead node is noticed in seconds; nothing is reported to anybody; a small /dev/shm is no reason to stop."""


def connect(cluster: Cluster, env_from: Sequence[str] = ()) -> Callable[[], None]:
    """Connect this process, and return what ends the connection. An existing connection is used and left.

    Raises:
        RolloutsError: there is no cluster at the address, or one cannot be begun.
    """
    import ray

    if ray.is_initialized():
        return lambda: None
    for name, value in _QUICK.items():
        os.environ.setdefault(name, value)
    folder = None if cluster.address else tempfile.mkdtemp(prefix="ct-ray-", dir=_short())
    quiet = {"log_to_driver": False, "configure_logging": False, "include_dashboard": False}
    try:
        if folder is None:
            ray.init(address=cluster.address, **{**quiet, "include_dashboard": None})
        else:
            with only_child_environment(env_from):
                ray.init(
                    address="local",
                    num_cpus=cluster.workers or os.cpu_count() or 1,
                    object_store_memory=_STORE,
                    _temp_dir=folder,
                    _node_ip_address="127.0.0.1",
                    **quiet,
                )
    except (OSError, RuntimeError, ValueError) as error:
        _end(folder)
        where = f"the cluster at {cluster.address} cannot be joined" if cluster.address else "no cluster can be begun"
        step = (
            "the driver must run on a node of the cluster; see `ray status` there"
            if cluster.address
            else "give fewer workers, or use on='local:4'"
        )
        raise RolloutsError(f"{where}: {str(error).splitlines()[0] if str(error) else type(error).__name__}; {step}") from (
            error
        )
    return lambda: _end(folder)


def _short() -> str | None:
    """A folder with a short name: paths of sockets have 107 bytes at most."""
    return "/tmp" if os.path.isdir("/tmp") and len(tempfile.gettempdir()) > 20 else None  # noqa: PTH112


def _end(folder: str | None) -> None:
    import ray

    ray.shutdown()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
