"""Reports: what systems did, as Markdown, as one HTML page, or as data.

The idea: `read_all(paths)` reads results files, `build(results)` computes everything once, and the report writes itself
in three forms. The page needs no network and no other file. Only the page needs matplotlib, the extra `report`.
"""

from __future__ import annotations

from ._failures import Failure, failures
from ._report import Report, build
from ._results import Results, combine, read_all, read_results
from .pareto import Point, pareto

__all__ = [
    "Failure",
    "Point",
    "Report",
    "Results",
    "build",
    "combine",
    "failures",
    "pareto",
    "read_all",
    "read_results",
]
