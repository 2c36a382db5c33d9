"""concertino-local: causal language models in this process, with transformers and continuous batching.

Nothing is published without a declaration: `[models."local/tiny"]` in a pool file or `concertino.toml`, or
`concertino_local.model("tiny", path=...)` in Python. Importing this module imports neither torch nor transformers, and
declaring a model loads nothing; the weights are read at the first request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from concertino import hookimpl

if TYPE_CHECKING:
    from concertino import ModelSpec

    from .local_model import LocalModel, Sample, Stats

__all__ = ["LocalModel", "Sample", "Stats", "concertino_declare_model", "model"]


def model(name: str, **options: Any) -> ModelSpec:
    """Declare a local model.

    Args:
        name: what the pool calls it.
        options: the settings; `path` is required, `concertino_local.settings.Settings` lists all of them.

    Raises:
        SpecError: an option is unknown or cannot be; names it, what was given and what is expected.
    """
    from .declaration import declare

    return declare(name, options)


@hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """A model that a pool file or `concertino.toml` declares."""
    from .declaration import declare

    return declare(name, options)


def __getattr__(name: str) -> Any:
    if name in ("LocalModel", "Sample", "Stats"):
        from . import local_model

        return getattr(local_model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
