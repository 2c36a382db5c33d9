"""concertino-replay: models that answer from recorded outputs of real models, with their tokens and prices.

A pool of real models without a model: for routing, cascades, votes, training and pool swaps. What is published is what
the files of `[providers.replay]` hold: `files = ["recorded.jsonl"]`, or `["example"]` for two invented models to try.
Importing this module reads nothing; the hooks below do.

    import concertino_replay

    pool = concertino_replay.pool("recorded.jsonl")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import Finding, ModelSpec, ProviderSettings

    from .declaring import models, pool
    from .examples import EXAMPLE, concertino_examples
    from .model import ReplayModel
    from .reading import RecordingError, read
    from .recording import Answer, Card, Question, Recording

_HOMES = {
    "EXAMPLE": "examples",
    "Answer": "recording",
    "Card": "recording",
    "Question": "recording",
    "Recording": "recording",
    "RecordingError": "reading",
    "ReplayModel": "model",
    "concertino_examples": "examples",
    "models": "declaring",
    "pool": "declaring",
    "read": "reading",
}

__all__ = [
    "EXAMPLE",
    "Answer",
    "Card",
    "Question",
    "Recording",
    "RecordingError",
    "ReplayModel",
    "concertino_declare_model",
    "concertino_doctor",
    "concertino_examples",
    "concertino_models",
    "models",
    "pool",
    "read",
]


@hookimpl
def concertino_models(settings: ProviderSettings) -> list[ModelSpec]:
    """The models of the files that the settings name."""
    from .declaring import published
    from .examples import note_published

    return note_published(published(settings))


@hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """One recorded model under a name of its own: `[models."replay/name"]`."""
    from .declaring import declare

    return declare(name, options)


@hookimpl
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """What the files hold, and what they lack."""
    from .findings import findings

    return list(findings(settings))


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    if name != "concertino_examples":  # they follow what was published last
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
