"""What is seen of one part of a place: a node of a cluster, or a worker process of this machine.

Invariant: counts never go back, also when the part is gone.
"""

from __future__ import annotations

from typing import NamedTuple


class NodeHealth(NamedTuple):
    """What is seen of a node.

    Attributes:
        node: its name; in Ray, its id.
        host: its address.
        state: `ready`, `starting`, `draining`, or `gone`.
        workers: that are ready.
        running: orders under way.
        done: orders that have ended there.
        lost: workers that died there.
        silent: seconds since the worker was heard that was not heard for the longest time; 0 where nobody listens.
    """

    node: str
    host: str
    state: str
    workers: int
    running: int
    done: int
    lost: int
    silent: float
