"""Descriptions from evidence: what a pool says about its models rests on tasks that they were really given.

    tasks -> each model answers them, through the executor -> graded -> a profile: figures with intervals
          -> a writer model says where the model is strong and weak -> the text, with the figures of the profile

_tasks     what is asked                        _grading      whether an answer is right
_answers   what came back, and its key          _collecting   having a model answer
_profile   the figures                          _facts        the figures in words
_prompt    what a writer is shown               _writing      asking it
_note      what it said                         _guard        which of its sentences are kept
_cache     what was paid for, on disk           _recording    the run and its trace
_describe  what is to be done for a pool        _work         doing it
_description  what comes of it                  _gather       several things at once

Invariants: whatever was paid for is on disk before anything else happens, under a key of its content, and is not paid
for twice; everything else is worked out again each time. Every figure in a text comes from the profile.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._describe import DEFAULT_CACHE, describe
    from ._description import Described, Description, Progress
    from ._profile import Profile, Rate
    from ._tasks import Task, draw_tasks, load_tasks

_HOMES = {
    "_describe": ["DEFAULT_CACHE", "describe"],
    "_description": ["Described", "Description", "Progress"],
    "_profile": ["Profile", "Rate"],
    "_tasks": ["Task", "draw_tasks", "load_tasks"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DEFAULT_CACHE",
    "Described",
    "Description",
    "Profile",
    "Progress",
    "Rate",
    "Task",
    "describe",
    "draw_tasks",
    "load_tasks",
]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use, so that the command line need not import the executor."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'concertino.describing' has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
