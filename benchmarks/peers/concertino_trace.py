"""concertino with a trace on disk for each run."""

from __future__ import annotations

from functools import partial

import concertino_rounds
from concertino_rounds import DISTRIBUTION, REQUIREMENTS, graph

__all__ = ["DISTRIBUTION", "REQUIREMENTS", "build", "graph"]

build = partial(concertino_rounds.build, trace=True)
