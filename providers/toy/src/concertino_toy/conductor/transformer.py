"""A transformer of the Qwen3 architecture in numpy: token ids in, logits out, with what was computed kept for the next.

The invariants: logits are those of the reference implementation, up to the rounding of 32-bit arithmetic, however the
tokens are cut into blocks; and what is remembered of a sequence is never changed, only made longer, so sequences that
begin alike can share it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .threads import one_thread

Floats = NDArray[np.float32]
BLOCK = 256
"""Tokens that are computed at once."""
_KINDS: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}


def read_weights(path: Path) -> dict[str, Floats]:
    """The tensors of a safetensors file, as 32-bit floats.

    Raises:
        ValueError: a tensor has another type than F32 or F16.
    """
    data = path.read_bytes()
    # safetensors: eight bytes give the length of a JSON header, offsets count from its end.
    size = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    found: dict[str, Floats] = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        if about["dtype"] not in _KINDS:
            raise ValueError(f"{path}: {name} is {about['dtype']}; expected {' or '.join(_KINDS)}")
        begin, end = (8 + size + offset for offset in about["data_offsets"])
        flat = np.frombuffer(data[begin:end], _KINDS[about["dtype"]])
        # A copy in 32 bits, so that the bytes of the file can be released.
        found[name] = np.ascontiguousarray(flat.reshape(about["shape"]).astype(np.float32))
    return found


@dataclass
class KeyValueCache:
    """What was computed of one sequence.

    Attributes:
        keys, values: of each layer, shape (key heads, room, width).
        length: how much of the room is used.
    """

    keys: list[Floats]
    values: list[Floats]
    length: int = 0


class Transformer:
    """One model.

    Raises:
        ValueError: the model is of another architecture.
    """

    def __init__(self, folder: Path) -> None:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if config.get("model_type") != "qwen3" or not config.get("tie_word_embeddings"):
            raise ValueError(f"{folder}: expected a qwen3 model with tied embeddings; got {config.get('model_type')!r}")
        weights = read_weights(folder / "model.safetensors")
        self.layers = int(config["num_hidden_layers"])
        self.heads, self.key_heads = int(config["num_attention_heads"]), int(config["num_key_value_heads"])
        self.width = int(config.get("head_dim") or config["hidden_size"] // self.heads)
        self.context = int(config["max_position_embeddings"])
        self._eps = np.float32(config["rms_norm_eps"])
        # Newer configurations keep it in a table of its own.
        theta = float((config.get("rope_parameters") or config)["rope_theta"])
        self._turns = 1.0 / theta ** (np.arange(0, self.width, 2) / self.width)
        self.embedding = weights["model.embed_tokens.weight"]
        self._norm = weights["model.norm.weight"]
        self._weights = [_Layer.of(weights, f"model.layers.{number}.") for number in range(self.layers)]

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        return int(self.embedding.size + self._norm.size + sum(layer.size for layer in self._weights))

    def cache(self, room: int) -> KeyValueCache:
        """An empty cache for so many tokens."""
        shape = (self.key_heads, room, self.width)
        return KeyValueCache(
            [np.empty(shape, np.float32) for _ in range(self.layers)],
            [np.empty(shape, np.float32) for _ in range(self.layers)],
        )

    def logits(self, ids: list[int], cache: KeyValueCache, *, every: bool = False) -> Floats:
        """Compute the next tokens of a sequence.

        Args:
            ids: the tokens behind those in the cache; one or more, at most `BLOCK`.
            cache: takes them up.
            every: logits behind every token, shape (tokens, size); else behind the last one, shape (size,).
        """
        with one_thread():
            return self._logits(ids, cache, every)

    def _logits(self, ids: list[int], cache: KeyValueCache, every: bool) -> Floats:
        start, count = cache.length, len(ids)
        angles = np.outer(np.arange(start, start + count), self._turns)
        cosine, sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        # A single token looks at everything before it, so it needs no mask.
        ahead = np.triu(np.full((count, count), -np.inf, np.float32), 1) if count > 1 else None
        hidden = self.embedding[np.asarray(ids)]
        for number, layer in enumerate(self._weights):
            hidden = hidden + self._attend(
                layer, number, self._normed(hidden, layer.before), cache, cosine, sine, ahead
            )
            inner = self._normed(hidden, layer.between)
            gate = inner @ layer.gate
            hidden = hidden + (gate / (1.0 + np.exp(-gate)) * (inner @ layer.up)) @ layer.down
        # Behind all layers, which write their columns at the old length.
        cache.length += count
        last = self._normed(hidden if every else hidden[-1], self._norm)
        return last @ self.embedding.T

    def _attend(
        self,
        layer: _Layer,
        number: int,
        hidden: Floats,
        cache: KeyValueCache,
        cosine: Floats,
        sine: Floats,
        ahead: Floats | None,
    ) -> Floats:
        count, start = len(hidden), cache.length
        end = start + count
        asked = self._normed((hidden @ layer.query).reshape(count, self.heads, self.width), layer.query_norm)
        known = self._normed((hidden @ layer.key).reshape(count, self.key_heads, self.width), layer.key_norm)
        told = (hidden @ layer.value).reshape(count, self.key_heads, self.width)
        cache.keys[number][:, start:end] = _turned(known, cosine, sine).transpose(1, 0, 2)
        cache.values[number][:, start:end] = told.transpose(1, 0, 2)
        keys, values = cache.keys[number][:, :end], cache.values[number][:, :end]
        shared = self.heads // self.key_heads
        # Heads that share keys are put side by side, so one product serves them all and no key is copied.
        asked = _turned(asked, cosine, sine).transpose(1, 0, 2).reshape(self.key_heads, shared * count, self.width)
        scores = asked @ keys.transpose(0, 2, 1) * np.float32(self.width**-0.5)
        if ahead is not None:
            scores.reshape(self.key_heads, shared, count, end)[..., start:] += ahead
        # Without the greatest taken off, exp would overflow.
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        seen = (scores @ values).reshape(self.heads, count, self.width).transpose(1, 0, 2)
        return (seen.reshape(count, self.heads * self.width) @ layer.out).astype(np.float32, copy=False)

    def _normed(self, hidden: Floats, weight: Floats) -> Floats:
        size = np.mean(np.square(hidden), -1, keepdims=True, dtype=np.float32)
        return (hidden / np.sqrt(size + self._eps) * weight).astype(np.float32, copy=False)


@dataclass(frozen=True)
class _Layer:
    """The weights of one layer; matrices have the shape (in, out)."""

    before: Floats
    query: Floats
    key: Floats
    value: Floats
    out: Floats
    query_norm: Floats
    key_norm: Floats
    between: Floats
    gate: Floats
    up: Floats
    down: Floats

    @classmethod
    def of(cls, weights: dict[str, Floats], prefix: str) -> _Layer:
        def matrix(name: str) -> Floats:
            # Stored as (out, in); rows in order make the product faster.
            return np.ascontiguousarray(weights[f"{prefix}{name}.weight"].T)

        own = f"{prefix}self_attn."
        return cls(
            weights[f"{prefix}input_layernorm.weight"],
            matrix("self_attn.q_proj"),
            matrix("self_attn.k_proj"),
            matrix("self_attn.v_proj"),
            matrix("self_attn.o_proj"),
            weights[f"{own}q_norm.weight"],
            weights[f"{own}k_norm.weight"],
            weights[f"{prefix}post_attention_layernorm.weight"],
            matrix("mlp.gate_proj"),
            matrix("mlp.up_proj"),
            matrix("mlp.down_proj"),
        )

    @property
    def size(self) -> int:
        return sum(weight.size for weight in vars(self).values())


def _turned(heads: Floats, cosine: Floats, sine: Floats) -> Floats:
    """Rotary positions: halves of each head are turned against each other. Shape (tokens, heads, width)."""
    half = heads.shape[-1] // 2
    first, second = heads[..., :half], heads[..., half:]
    cosine, sine = cosine[:, None], sine[:, None]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)
