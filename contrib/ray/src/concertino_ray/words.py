"""Which cluster a word names: `ray` and `ray:4` begin one on this machine, `ray://HOST:PORT` is one that runs.

Invariant: a word is refused before anything has been connected or begun.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass

from concertino.core.errors import UsageError
from concertino.rollouts import Rollouts, Work
from concertino.rollouts.place import OpensPlace

_HERE = re.compile(r"ray(?::([1-9][0-9]{0,3}))?")
_THERE = re.compile(r"ray://((?:[\w.-]+|\[[0-9a-fA-F:.]+\]):[1-9][0-9]{0,4})")


@dataclass(frozen=True)
class Cluster:
    """A cluster.

    Attributes:
        address: HOST:PORT of its head; empty begins one on this machine, which ends with the runs.
        workers: of a cluster that is begun; None gives each CPU one.
    """

    address: str = ""
    workers: int | None = None

    @classmethod
    def of(cls, word: str) -> Cluster:
        """The cluster of a word.

        Raises:
            UsageError: it names none.
        """
        if found := _HERE.fullmatch(word):
            return cls(workers=int(found[1]) if found[1] else None)
        if found := _THERE.fullmatch(word):
            return cls(found[1])
        raise UsageError(
            f"on={word!r}: expected ray (a cluster on this machine), ray:4 (one with four workers), or "
            "ray://HOST:PORT (one that runs, by the address that `ray start --head` prints, such as "
            "ray://10.0.0.1:6379)"
        )


def ray_place(word: str) -> OpensPlace:
    """What opens the place of a word.

    Raises:
        UsageError: the word names no cluster, or Ray is not installed.
    """
    cluster = Cluster.of(word)
    if importlib.util.find_spec("ray") is None:
        raise UsageError(
            f"on={word!r}: Ray is not installed here; install the version that the cluster has: pip install "
            "'concertino[ray]'"
        )

    def opened(work: Work, *, slots: int, env_from: Sequence[str]) -> Rollouts:
        from .ray_runs import RayRuns

        return RayRuns(work, cluster, slots=slots, env_from=env_from)

    return opened
