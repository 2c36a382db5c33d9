"""The connection to a cluster, or one that is begun on this machine.

Invariant: a cluster that is begun here can be reached from this machine alone, and only with its token; it sends
nothing about itself to anybody; it has none of the keys of this process but those that were named; and nothing is
left of it, no process and no file.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from concertino.core.child_environment import only_child_environment
from concertino.core.logs import logger_of
from concertino.core.private_files import write_private
from concertino.rollouts import RolloutsError

from .words import Cluster

logger = logger_of("ray")
_LOOPBACK = "127.0.0.1"
_STORE = 80 << 20
"""Bytes of the object store of a cluster on this machine, about the least that Ray takes: results do not go there."""
_HERE = {
    # By its name for other systems only. Ray has no other setting that keeps its servers from listening everywhere.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE": "1",
    # A dead node is noticed in three seconds, and not in a minute.
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}
_token = secrets.token_hex(32)
"""Of all clusters that this process begins: Ray reads it once."""


def connect(cluster: Cluster, env_from: Sequence[str] = ()) -> Callable[[], None]:
    """Connect this process, and return what ends the connection. An existing connection is used and left.

    Raises:
        RolloutsError: there is no cluster at the address, or one cannot be begun.
    """
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return lambda: None
    leave = _joined(cluster.address) if cluster.address else _begun(cluster, env_from)
    restore = _logs_what_ray_prints()

    def left() -> None:
        leave()
        restore()

    return left


@contextmanager
def loopback_settings(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The environment, and the arguments, with which Ray begins nodes that only this machine can reach.

    Args:
        folder: for the token, with a short name: paths of Ray's sockets in it have 107 bytes at most.
    """
    token = folder / "token"
    write_private(token, _token.encode())
    kept = dict(os.environ)
    os.environ.update(_HERE, RAY_AUTH_TOKEN_PATH=str(token))
    try:
        from ray._private import ray_constants
        from ray._raylet import Config

        # Where Ray was imported before, it has read the environment already.
        ray_constants.ENABLE_RAY_CLUSTER = False
        Config.initialize("")
        yield {"object_store_memory": _STORE, "include_dashboard": False}
    finally:
        for name in (*_HERE, "RAY_AUTH_TOKEN_PATH"):
            os.environ.pop(name, None)
            if name in kept:
                os.environ[name] = kept[name]


def _begun(cluster: Cluster, env_from: Sequence[str]) -> Callable[[], None]:
    folder = Path(tempfile.mkdtemp(prefix="ct-ray-", dir=_short()))

    def end() -> None:
        import ray

        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)

    try:
        with only_child_environment(env_from), loopback_settings(folder) as options:
            import ray

            workers = cluster.workers or os.cpu_count() or 1
            ray.init(
                address="local",
                num_cpus=workers,
                _temp_dir=str(folder),
                log_to_driver=False,
                logging_level="error",
                **options,
            )
        address = ray.nodes()[0]["NodeManagerAddress"]
        if address != _LOOPBACK:
            raise RuntimeError(f"this version of Ray listens on {address}, where others could reach it")
    except (OSError, RuntimeError, ValueError) as error:
        end()
        raise RolloutsError(
            f"no cluster can be begun here: {_first_line(error)}; use worker processes instead: on='local:4'"
        ) from error
    return end


def _joined(address: str) -> Callable[[], None]:
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (OSError, RuntimeError, ValueError) as error:
        ray.shutdown()
        raise RolloutsError(
            f"the cluster at {address} cannot be joined: {_first_line(error)}; begin the runs on a node of the "
            "cluster, and see there what `ray status` says"
        ) from error
    leave: Callable[[], None] = ray.shutdown
    return leave


def _logs_what_ray_prints() -> Callable[[], None]:
    """Ray prints to standard output when a node dies, where a command writes its JSON. It has no setting for that.

    Returns:
        what has it print again.
    """
    from ray._private import worker

    printing = worker.print_to_stdstream

    def log(data: Mapping[str, Any], **_: Any) -> None:
        for text in data["lines"]:
            logger.warning("Ray: %s", str(text).partition(". ")[0])  # what follows is what the node last did, in detail

    def restore() -> None:
        worker.print_to_stdstream = printing

    worker.print_to_stdstream = log
    return restore


def _short() -> str | None:
    """Where a folder has a short name."""
    usual = tempfile.gettempdir()
    return "/tmp" if len(usual) > 20 and Path("/tmp").is_dir() else None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
