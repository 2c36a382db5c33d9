"""concertino-ray: many runs on the nodes of a Ray cluster.

    words        which cluster a word names            cluster     connecting to it, or beginning one
    ray_runs     the place itself: orders in, results  crew        workers on every node, their health, their deaths
    ray_worker   the actor that carries out orders     journal_*   traces of workers that do not see their folder

Invariant: importing this package does not import Ray. What a death costs is time: an order whose worker is gone is
issued again, and the next worker takes the trace over, so that whoever was thought dead and lives is refused.
"""

from __future__ import annotations

from concertino.rollouts import NodeHealth

from .ray_runs import RayRuns
from .words import Cluster, ray_place

__all__ = ["Cluster", "NodeHealth", "RayRuns", "ray_place"]
