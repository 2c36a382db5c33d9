"""Declaring a local model: a `ModelSpec` of its settings and of what its folder says without being loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concertino import ModelSpec, Prices, SpecError

from .local_model import LocalModel
from .settings import Settings, read_settings


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
            raise SpecError(f"model {name!r}: {key}={given!r}; there is no such file or folder")
    limits = [limit for limit in (settings.context, context_of(config)) if limit]
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
    )


def context_of(config: Mapping[str, Any]) -> int | None:
    """The longest sequence that a model's `config.json` allows, None if it does not say.

    A `longrope` model turns its whole cache into nonsense when a sequence grows past the length it was first trained
    on, so that length is its limit here.
    """
    inner = config.get("text_config") or config
    rope = inner.get("rope_parameters") or inner.get("rope_scaling") or {}
    keys = ["max_position_embeddings", "n_positions", "max_seq_len", "seq_length"]
    if "longrope" in (rope.get("rope_type"), rope.get("type")):
        keys.insert(0, "original_max_position_embeddings")
    for key in keys:
        value = rope.get(key) or inner.get(key) or config.get(key)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _read_config(name: str, settings: Settings) -> dict[str, Any]:
    folder = Path(settings.path).expanduser()
    if not folder.is_dir():
        if looks_like_a_folder(settings.path):
            raise SpecError(
                f"model {name!r}: path={settings.path!r}; there is no such folder. Relative paths count from the "
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
        raise SpecError(f"model {name!r}: path={settings.path!r}; its config.json is no JSON: {error}") from None
    return config if isinstance(config, dict) else {}


def looks_like_a_folder(path: str) -> bool:
    """Whether a path is surely not a hub name, which is `name` or `owner/name`."""
    return path.startswith((".", "~", "/", "\\")) or path.count("/") > 1 or "\\" in path
