"""What a study found, drawn: a panel for each measure, a line for each arm, a dot for each seed.

The invariant: what is drawn is what the table says; the bar is the interval of the mean over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from concertino_train.running.curves import COLOURS, drawing

from .comparison import StudyFinding
from .study import Study

_WIDE = 3
"""Panels beside each other."""


def draw(study: Study, found: Sequence[StudyFinding], path: str | Path) -> Path | None:
    """Draw findings as an SVG.

    Args:
        study: whose they are.
        found: of all arms.
        path: replaced in one step.

    Returns:
        The path; None where nothing was found.
    """
    measures = list(dict.fromkeys(each.measure for each in found))
    if not measures:
        return None
    rows = -(-len(measures) // _WIDE)
    arms = [arm.name for arm in study.arms]
    with drawing(path, (9.0, rows * (0.9 + 0.3 * len(arms)) + 0.5), study.question) as figure:
        axes = list(figure.subplots(rows, _WIDE, squeeze=False).flat)
        for axis, measure in zip(axes, measures, strict=False):
            for each in (one for one in found if one.measure == measure):
                height, colour = -arms.index(each.arm), COLOURS[arms.index(each.arm) % len(COLOURS)]
                if each.value.low is not None and each.value.high is not None:
                    axis.plot([each.value.low, each.value.high], [height, height], color=colour, linewidth=1.4)
                axis.plot(each.value.values, [height] * len(each.value.values), ".", color=colour, alpha=0.5)
                axis.plot([each.value.mean], [height], "o", color=colour, markersize=5)
            axis.set_yticks([-place for place in range(len(arms))], arms)
            axis.set_ylim(-len(arms) + 0.4, 0.6)
            axis.set_title(measure)
        for axis in axes[len(measures) :]:
            axis.set_axis_off()
    return Path(path)
