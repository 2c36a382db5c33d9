"""A strategy of a third party: scout and judge, with tasks to practise on. Published as any plugin is."""

from concertino.plugins import hookimpl

from .practice import TWICE
from .strategy import ScoutJudge


@hookimpl
def concertino_strategies() -> list[type]:
    """The strategy."""
    return [ScoutJudge]


@hookimpl
def concertino_tasks() -> list[object]:
    """Its practice tasks."""
    return [TWICE]
