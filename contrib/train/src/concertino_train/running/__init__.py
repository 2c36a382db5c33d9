"""What long work needs: a folder, figures, curves, traces, monitors, a way to stop, and an estimate before it begins.

_folder    what is where, who may write
_numbered  folders of checkpoints, and which are kept
_metrics   figures by step, in a file that survives a crash
_sinks     programs that draw figures, off by default
_figures   a step of rollouts in numbers
_monitors  signs of collapse, and what to try
_traces    rollouts as trace files
_plot      curves as SVG
_progress  what a person sees
_signals   ending in good order
_estimate  memory, tokens, arithmetic, money
_launch    the command for several processes
_quiet     no bars of other libraries
_ranks     which process this is
_watch     what listens to a trainer of transformers; imports it, and is imported when used

Nothing here needs torch, but for the shape of a model that is described on this machine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._estimate import Estimate, estimate
    from ._figures import TESTS, episode_figures, evenness, over_ranks
    from ._folder import TrainingFolder, clean_folder
    from ._launch import launch_command, launch_text
    from ._metrics import MetricsFile, read_metrics
    from ._monitors import CollapseWarning, Monitors
    from ._numbered import number_of, numbered, prune
    from ._plot import COLOURS, can_plot, drawing, plot, smoothed
    from ._progress import JsonReporter, PlainReporter, Reporter, RichReporter, clock, reporter
    from ._quiet import quietly
    from ._ranks import Rank, anywhere, this_rank
    from ._signals import GracefulStop
    from ._sinks import SINKS, Sink, check_sinks, open_sinks
    from ._traces import TraceWriter
    from ._watch import Watch

_HOMES = {
    "_estimate": ["Estimate", "estimate"],
    "_figures": ["TESTS", "episode_figures", "evenness", "over_ranks"],
    "_folder": ["TrainingFolder", "clean_folder"],
    "_launch": ["launch_command", "launch_text"],
    "_metrics": ["MetricsFile", "read_metrics"],
    "_monitors": ["CollapseWarning", "Monitors"],
    "_numbered": ["number_of", "numbered", "prune"],
    "_plot": ["COLOURS", "can_plot", "drawing", "plot", "smoothed"],
    "_progress": ["JsonReporter", "PlainReporter", "Reporter", "RichReporter", "clock", "reporter"],
    "_quiet": ["quietly"],
    "_ranks": ["Rank", "anywhere", "this_rank"],
    "_signals": ["GracefulStop"],
    "_sinks": ["SINKS", "Sink", "check_sinks", "open_sinks"],
    "_traces": ["TraceWriter"],
    "_watch": ["Watch"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "COLOURS",
    "SINKS",
    "TESTS",
    "CollapseWarning",
    "Estimate",
    "GracefulStop",
    "JsonReporter",
    "MetricsFile",
    "Monitors",
    "PlainReporter",
    "Rank",
    "Reporter",
    "RichReporter",
    "Sink",
    "TraceWriter",
    "TrainingFolder",
    "Watch",
    "anywhere",
    "can_plot",
    "check_sinks",
    "clean_folder",
    "clock",
    "drawing",
    "episode_figures",
    "estimate",
    "evenness",
    "launch_command",
    "launch_text",
    "number_of",
    "numbered",
    "open_sinks",
    "over_ranks",
    "plot",
    "prune",
    "quietly",
    "read_metrics",
    "reporter",
    "smoothed",
    "this_rank",
]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
