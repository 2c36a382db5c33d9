"""Declaring a local model: a `ModelSpec` of its settings and of what its folder says without being loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from concertino import ModelSpec, Prices, SpecError, hookimpl

from .folder import context_limit, looks_like_a_folder
from .local_model import LocalModel
from .settings import LocalSettings, read_settings


def model(name: str, **options: Any) -> ModelSpec:
    """Declare a local model.

    Args:
        name: what the pool calls it.
        options: the settings; `path` is required, the README lists all of them.

    Raises:
        SpecError: an option is unknown or invalid; names it, what was given and what is expected.
    """
    return declare(name, options)


@hookimpl
def concertino_declare_model(name: str, options: dict[str, Any]) -> ModelSpec:
    """A model that a pool file or `concertino.toml` declares."""
    return declare(name, options)


def declare(name: str, options: Mapping[str, Any]) -> ModelSpec:
    """A spec whose factory makes a `LocalModel`; nothing is loaded.

    Raises:
        SpecError: an option is unknown or cannot be, or a folder or file that it names is not there.
    """
    settings = read_settings(name, options)
    config = _read_config(name, settings)
    for key in ("adapter", "template"):
        given = getattr(settings, key)
        if given is not None and not Path(given).expanduser().exists():
            raise SpecError(f"model {name!r}: {key}={given!r}; file or folder not found")
    limits = [limit for limit in (settings.context, context_limit(config)) if limit]
    what = f"{config['model_type']} model" if config.get("model_type") else "language model"
    return ModelSpec(
        name,
        lambda: LocalModel(settings),
        description=f"A {what}, run on this machine from {Path(settings.path).name}.",
        prices=Prices(0.0, 0.0),
        context=min(limits, default=None),
        concurrency=settings.max_batch,
        max_tokens=settings.max_tokens,
        options=dict(options),
        accepts=(),  # it loads the text part of a model alone
        lacks=_lacking,
    )


def _lacking() -> str:
    """The packages that are missing, and the next step; empty for none."""
    missing = [name for name in ("torch", "transformers") if find_spec(name) is None]
    return f"{' and '.join(missing)} not installed; pip install {' '.join(missing)}" if missing else ""


def _read_config(name: str, settings: LocalSettings) -> dict[str, Any]:
    folder = Path(settings.path).expanduser()
    if not folder.is_dir():
        if looks_like_a_folder(settings.path):
            raise SpecError(
                f"model {name!r}: path={settings.path!r}; folder not found. Relative paths count from the "
                f"working directory {str(Path.cwd())!r}"
            )
        return {}
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(
            f"model {name!r}: path={settings.path!r}; the folder has no config.json, so it holds no model of "
            "transformers. A LoRA adapter goes into `adapter`, with its base model as `path`"
        ) from None
    except ValueError as error:
        raise SpecError(f"model {name!r}: path={settings.path!r}; its config.json is not valid JSON: {error}") from None
    return config if isinstance(config, dict) else {}
