"""The network that reads a card, with numpy alone: words and features in, a belief out.

`concertino_train.scorer.network` is the same network for training; a test holds the two equal. Each card is read
without the others, but for the features that compare them, so the order of the cards changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .beliefs import Belief
from .reading import Floats

_NEIGHBOURS = 2


class NetworkWeights:
    """The weights of a network, by the names that torch gives them.

    Args:
        arrays: by name.
        heads: of each layer.
    """

    def __init__(self, arrays: Mapping[str, Floats], heads: int) -> None:
        self.arrays = {name: np.asarray(array, np.float32) for name, array in arrays.items()}
        self.heads = heads
        self.layers = sum(name.endswith("self_attn.in_proj_weight") for name in arrays)

    def linear(self, name: str, values: Floats) -> Floats:
        """A linear layer."""
        found: Floats = values @ self.arrays[f"{name}.weight"].T
        return found + self.arrays[f"{name}.bias"]

    def normed(self, name: str, values: Floats) -> Floats:
        """A layer norm."""
        centred = values - values.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        found: Floats = scaled * self.arrays[f"{name}.weight"] + self.arrays[f"{name}.bias"]
        return found


def read_card(weights: NetworkWeights, frozen: Floats, own_rows: np.ndarray, features: Floats) -> Belief:
    """Read one card.

    Args:
        frozen: vectors of its words, shape (tokens, size).
        own_rows: the rows of their own vectors, 0 for none; shape (tokens,).
        features: shape (tokens, FEATURES).
    """
    own = weights.arrays["own.weight"][own_rows] * (own_rows > 0)[:, None]
    hidden = weights.linear("enter", frozen) + own + weights.linear("features", features)
    hidden = hidden + weights.arrays["places.weight"][: len(hidden)]
    hidden = hidden + _gelu(_with_neighbours(weights, hidden))
    for layer in range(weights.layers):
        hidden = _layer(weights, f"layers.{layer}", hidden)
    attention = _softmax(weights.linear("weigh", hidden), axis=0)
    pooled = np.concatenate([(attention.T @ hidden).ravel(), hidden.mean(0)])
    told = weights.linear("tell.2", _gelu(weights.linear("tell.0", pooled)))
    return belief_of(*(float(each) for each in told))


def belief_of(mean: float, precision: float, trust: float) -> Belief:
    """The belief that three outputs of the network mean."""
    return Belief(
        0.01 + 0.98 * float(_sigmoid(mean)),
        min(60.0, 1 + 2 * float(np.logaddexp(0, precision + 1.5))),
        0.02 + 0.96 * float(_sigmoid(trust + 2)),
    )


def _with_neighbours(weights: NetworkWeights, hidden: Floats) -> Floats:
    """A convolution over five tokens."""
    kernel = weights.arrays["neighbours.weight"]  # shape (out, in, 5)
    padded = np.pad(hidden, ((_NEIGHBOURS, _NEIGHBOURS), (0, 0)))
    parts = [padded[offset : offset + len(hidden)] @ kernel[:, :, offset].T for offset in range(kernel.shape[2])]
    found: Floats = sum(parts, weights.arrays["neighbours.bias"])
    return found


def _layer(weights: NetworkWeights, name: str, hidden: Floats) -> Floats:
    """A layer of a transformer's encoder, norms first."""
    hidden = hidden + _attended(weights, f"{name}.self_attn", weights.normed(f"{name}.norm1", hidden))
    wide = _gelu(weights.linear(f"{name}.linear1", weights.normed(f"{name}.norm2", hidden)))
    return hidden + weights.linear(f"{name}.linear2", wide)


def _attended(weights: NetworkWeights, name: str, values: Floats) -> Floats:
    tokens, width = values.shape
    joined = values @ weights.arrays[f"{name}.in_proj_weight"].T + weights.arrays[f"{name}.in_proj_bias"]
    query, key, value = joined.reshape(tokens, 3, weights.heads, -1).transpose(1, 2, 0, 3)
    scores = _softmax(query @ key.transpose(0, 2, 1) / np.sqrt(width / weights.heads), axis=-1)
    mixed = (scores @ value).transpose(1, 0, 2).reshape(tokens, width)
    return weights.linear(f"{name}.out_proj", mixed)


def _softmax(values: Floats, axis: int) -> Floats:
    raised = np.exp(values - values.max(axis, keepdims=True))
    found: Floats = raised / raised.sum(axis, keepdims=True)
    return found


def _sigmoid(value: float) -> float:
    return float(np.exp(-np.logaddexp(0, -value)))


def _gelu(values: Floats) -> Floats:
    """GELU by its tanh approximation (Hendrycks and Gimpel, 2016)."""
    found: Floats = 0.5 * values * (1 + np.tanh(0.7978845608 * (values + 0.044715 * values**3)))
    return found
