"""Reports: what systems did, as Markdown, as one HTML page, or as data.

The idea: `read_all(paths)` reads results files, `build(results)` computes everything once, and the report writes itself
in three forms. The page needs no network and no other file. Only the page needs matplotlib, the extra `report`.
"""

from __future__ import annotations

from .frontier import pareto
from .report import Report, build
from .results import Results, read_all, read_results

__all__ = ["Report", "Results", "build", "pareto", "read_all", "read_results"]
