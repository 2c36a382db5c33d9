"""concertino-replay: models that answer from recorded outputs of real models, with their tokens and prices.

A pool of real models without a model: for routing, cascades, votes, training and pool swaps. What is published is what
the files of `[providers.replay]` hold: `files = ["recorded.jsonl"]`, or `["example"]` for two invented models to try.

    import concertino_replay

    pool = concertino_replay.pool("recorded.jsonl")
"""

from __future__ import annotations

from typing import Any

from concertino import Finding, ModelSpec, ProviderSettings, hookimpl

from .declaration import declare, models, pool, published
from .doctor import findings
from .examples import EXAMPLE, PublishedExamples
from .files import RecordingError, read
from .recording import Recording

__all__ = [
    "EXAMPLE",
    "Recording",
    "RecordingError",
    "models",
    "pool",
    "read",
]

concertino_examples = PublishedExamples()


@hookimpl
def concertino_models(settings: ProviderSettings) -> list[ModelSpec]:
    """The models of the files that the settings name."""
    concertino_examples.published = published(settings)
    return concertino_examples.published


@hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """One recorded model under a name of its own: `[models."replay/name"]`."""
    return declare(name, options)


@hookimpl
def concertino_doctor(settings: ProviderSettings) -> list[Finding]:
    """What the files hold, and what they lack."""
    return list(findings(settings))
