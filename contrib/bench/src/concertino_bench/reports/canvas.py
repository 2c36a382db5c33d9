"""Plots as SVG for a page: matplotlib draws, and the page's style sheet gives the colours.

The invariants: a text is never read as mathematics and is escaped; the identifiers of one plot are its own, so several
stand on one page; the same data gives the same bytes. Colours are drawn as stand-ins and named in the end, so a plot
follows the light or dark scheme of its page.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING

from concertino import UsageError

from .texts import escaped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# Stand-ins that no plot uses otherwise; `svg` replaces them by the page's colours.
INK, MUTED, LINE, PAPER = "#0b0b01", "#0b0b02", "#0b0b03", "#0b0b04"
SERIES = 8
WIDTH = 10.0
"""Inches; a page shows it as wide as it is itself."""

_NAMES = {INK: "ink", MUTED: "muted", LINE: "line", PAPER: "paper"}
_NAMES |= {f"#0a0a{number:02x}": f"s{number}" for number in range(SERIES + 1)}
_RC: dict[RcKeyType, object] = {
    # Text stays text: it can be selected and read aloud, and takes the page's font.
    "svg.fonttype": "none",
    # Otherwise matplotlib makes new identifiers each time, and equal results give other bytes.
    "svg.hashsalt": "concertino",
    # A system may be called `$x$`.
    "text.parse_math": False,
    "text.usetex": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.titlesize": 10.0,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "path.simplify": True,
}


def series(number: int) -> str:
    """The colour of the n-th system, from 0; after eight they begin again, with other marks. -1 is that of the rest."""
    return f"#0a0a{number % SERIES + 1:02x}" if number >= 0 else "#0a0a00"


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib as plots here need it; the settings of others are put back.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise UsageError(
            "the HTML page of a report needs matplotlib; pip install 'concertino-bench[report]' adds it, or write the "
            "report as Markdown, which needs nothing more"
        ) from error
    with mpl.rc_context(_RC), warnings.catch_warnings():
        # The browser has fonts that matplotlib has not; it only measures with its own.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        yield


def figure(height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure as wide as the page and `height` inches high, with its axes row by row."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(WIDTH, height))
    axes = made.subplots(rows, columns, squeeze=False, sharey=True)
    return made, list(axes.flat)


def svg(made: Figure, name: str, title: str, description: str, tips: list[str]) -> str:
    """The figure as an `<svg>` element.

    Args:
        name: begins every identifier in it.
        title, description: for those who do not see it.
        tips: what the artists with the identifiers `tip-0`, `tip-1`, … are called.
    """
    out = StringIO()
    made.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    head, _, body = text.partition(">")
    box = re.search(r'viewBox="[^"]*"', head)
    # Metadata, comments and styles would carry versions and a style sheet of matplotlib's into the page.
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.S)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.S)
    body = re.sub(r"#0[ab]0[ab][0-9a-f]{2}", lambda found: f"var(--{_NAMES.get(found[0], 'ink')})", body)
    # The page chooses the font; only the size stays.
    body = re.sub(r"font: (?:bold |[a-z0-9]+ )?([\d.]+px) [^;\"]*", r"font-size: \1", body)
    body = re.sub(r'<g id="tip-(\d+)">', lambda found: _tip(found, tips), body)
    # Several plots stand on one page, and matplotlib gives each the same identifiers.
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = re.sub(r'href="#', f'href="#{name}-', body).replace("xlink:href", "href")
    opening = f'<svg class="plot" {box[0] if box else ""} role="img" aria-labelledby="{name}-title {name}-desc">'
    words = f'<title id="{name}-title">{escaped(title)}</title><desc id="{name}-desc">{escaped(description)}</desc>'
    return f"{opening}{words}{body.strip()}"


def _tip(found: re.Match[str], tips: list[str]) -> str:
    return f'<g id="tip-{found[1]}" class="tip"><title>{escaped(tips[int(found[1])])}</title>'
