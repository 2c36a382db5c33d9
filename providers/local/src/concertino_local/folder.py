"""What a model's folder says without being loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def looks_like_a_folder(path: str) -> bool:
    """Whether a path cannot be a hub name, which is `name` or `owner/name`."""
    return path.startswith((".", "~", "/", "\\")) or path.count("/") > 1 or "\\" in path


def context_limit(config: Mapping[str, Any]) -> int | None:
    """The longest sequence that a model's `config.json` allows; None if it names no limit.

    A `longrope` model rescales every position once a sequence grows past the length it was first trained on, which
    invalidates its whole cache. That length is its limit here.
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
