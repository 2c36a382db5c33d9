"""The drawing of a run that the page on notebooks shows: what `show()` of the notebook's graph gives.

Times and ids differ from run to run, so they are replaced, and the same code gives the same drawing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tree import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NOTEBOOK = ROOT / "docs" / "examples" / "notebooks" / "first_run.ipynb"


def cells_of(notebook: Path) -> list[str]:
    """The code cells of a notebook, in order."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def drawing_page() -> str:
    """The drawing, as HTML that a page includes."""
    from concertino.core.events import Planned
    from concertino.traces.board import board_of
    from concertino.traces.run_graph import RunGraph

    names: dict[str, Any] = {}
    for cell in cells_of(NOTEBOOK)[:3]:
        exec(cell.replace("planned.show()", ""), names)
    events = names["planned"].events
    plans = {event.round: event.plan for event in events if isinstance(event, Planned)}
    return normalised(RunGraph(board_of(event.to_json() for event in events), plans).to_html()) + "\n"


def normalised(markup: str) -> str:
    """Without times and ids."""
    markup = re.sub(r"\d+\.\d\d s\b", "0.01 s", markup)
    return re.sub(r"\d{8}-\d{6}-[0-9a-f]{12}", "20260131-142501-3f9a1c07b2d4", markup)
