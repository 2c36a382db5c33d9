"""Figures as SVG, and the curves of a training: rewards, lengths, costs over steps; matplotlib draws.

The invariant: the same figures give the same bytes.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PANELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("reward", ("reward", "success", "eval/success", "format")),
    ("length", ("tokens",)),
    ("rounds and calls", ("rounds", "calls")),
    ("cost of a rollout", ("units", "usd")),
    ("loss", ("loss",)),
)
"""Title and figures of each panel; those that are not there are left out."""
COLOURS = ("#2a5db0", "#c2571a", "#2f7d4f", "#8a4fa3")
_RC: Any = {
    "svg.fonttype": "none",
    # matplotlib makes up names of elements; the same salt makes the same ones.
    "svg.hashsalt": "concertino",
    "text.parse_math": False,
    "font.size": 9.0,
    "font.family": "sans-serif",
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.edgecolor": "#999999",
    "legend.frameon": False,
    "axes.axisbelow": True,
}


def can_plot() -> bool:
    """Whether matplotlib is there; pip install matplotlib adds it."""
    return importlib.util.find_spec("matplotlib") is not None


def plot(lines: Sequence[Mapping[str, Any]], path: str | Path, title: str = "") -> Path | None:
    """Draw the curves.

    Args:
        lines: figures by step, as `read_metrics` gives them.
        path: the SVG; replaced in one step.
        title: above the panels.

    Returns:
        The path; None where there is nothing to draw.
    """
    panels = [(name, [key for key in keys if _points(lines, key)[0]]) for name, keys in PANELS]
    panels = [(name, keys) for name, keys in panels if keys]
    if not panels:
        return None
    with drawing(path, (8.0, 1.9 * len(panels) + 0.4), title) as figure:
        axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True)[:, 0]
        for axis, (name, keys) in zip(axes, panels, strict=True):
            for number, key in enumerate(keys):
                steps, values = _points(lines, key)
                colour = COLOURS[number % len(COLOURS)]
                axis.plot(steps, values, color=colour, alpha=0.3 if len(values) > 1 else 1.0, linewidth=0.9, marker=".")
                axis.plot(steps, smoothed(values), color=colour, linewidth=1.6, label=key)
            axis.set_title(name)
            axis.legend(loc="best")
        axes[-1].set_xlabel("step")
    return Path(path)


@contextmanager
def drawing(path: str | Path, size: tuple[float, float], title: str = "") -> Iterator[Any]:
    """A figure in the style of this package, written as an SVG at the end.

    Args:
        path: replaced in one step; nothing is written where drawing fails.
        size: width and height in inches.
        title: above the panels.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    target = Path(path)
    with mpl.rc_context(_RC):
        figure = Figure(figsize=size)
        yield figure
        if title:
            figure.suptitle(title, x=0.01, ha="left")
        figure.tight_layout()
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        # Date and version would make two drawings of the same figures differ.
        figure.savefig(unfinished, format="svg", metadata={"Date": None, "Creator": None})
    unfinished.replace(target)


def smoothed(values: Sequence[float], weight: float = 0.8) -> list[float]:
    """An exponential mean without a bias at the beginning.

    Args:
        values: in the order of steps.
        weight: of what was before, 0 to below 1.
    """
    found, total, norm = [], 0.0, 0.0
    for value in values:
        total, norm = weight * total + value, weight * norm + 1.0
        found.append(total / norm)
    return found


def _points(lines: Sequence[Mapping[str, Any]], key: str) -> tuple[list[int], list[float]]:
    found = [(line["step"], float(line[key])) for line in lines if isinstance(line.get(key), (int, float))]
    # A figure that is always 0 has nothing to show, such as $ where all is free.
    if not any(value for _, value in found):
        return [], []
    return [step for step, _ in found], [value for _, value in found]
