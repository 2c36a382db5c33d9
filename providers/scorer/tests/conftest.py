"""A scorer with random weights: enough for everything but what it has learned."""

from __future__ import annotations

import numpy as np
import pytest
from concertino_scorer.features import FEATURES
from concertino_scorer.matching import Matching
from concertino_scorer.model_file import ScorerModel
from concertino_scorer.network import NetworkWeights
from concertino_scorer.reading import MOST_TOKENS, UNKNOWN
from concertino_scorer.words import WordNumbers

WORDS = [
    "percent",
    "right",
    "wrong",
    "of",
    "excellent",
    "poor",
    "at",
    "chemistry",
    "poetry",
    "acid",
    "verse",
    ".",
    "fail",
]
WIDTH, HEADS, MEANING = 8, 2, 6
SHAPES = {
    "own.weight": (4, WIDTH),
    "enter.weight": (WIDTH, MEANING + 3),
    "enter.bias": (WIDTH,),
    "features.weight": (WIDTH, FEATURES),
    "features.bias": (WIDTH,),
    "places.weight": (MOST_TOKENS, WIDTH),
    "neighbours.weight": (WIDTH, WIDTH, 5),
    "neighbours.bias": (WIDTH,),
    "layers.0.self_attn.in_proj_weight": (3 * WIDTH, WIDTH),
    "layers.0.self_attn.in_proj_bias": (3 * WIDTH,),
    "layers.0.self_attn.out_proj.weight": (WIDTH, WIDTH),
    "layers.0.self_attn.out_proj.bias": (WIDTH,),
    "layers.0.linear1.weight": (2 * WIDTH, WIDTH),
    "layers.0.linear1.bias": (2 * WIDTH,),
    "layers.0.linear2.weight": (WIDTH, 2 * WIDTH),
    "layers.0.linear2.bias": (WIDTH,),
    "layers.0.norm1.weight": (WIDTH,),
    "layers.0.norm1.bias": (WIDTH,),
    "layers.0.norm2.weight": (WIDTH,),
    "layers.0.norm2.bias": (WIDTH,),
    "weigh.weight": (4, WIDTH),
    "weigh.bias": (4,),
    "tell.0.weight": (WIDTH, 5 * WIDTH),
    "tell.0.bias": (WIDTH,),
    "tell.2.weight": (3, WIDTH),
    "tell.2.bias": (3,),
}


@pytest.fixture
def model() -> ScorerModel:
    """Equal in every test."""
    chance = np.random.default_rng(0)
    vectors = chance.normal(size=(UNKNOWN + 1 + len(WORDS), MEANING + 3)).astype(np.float32)
    vectors[: UNKNOWN + 1] = 0
    arrays = {name: chance.normal(scale=0.3, size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    own = np.zeros((4, MEANING), np.float32), np.zeros(4, np.float32)
    matching = Matching(np.eye(MEANING, dtype=np.float32), np.zeros(MEANING + 1, np.float32), 0.0, *own)
    return ScorerModel(
        WordNumbers(WORDS, UNKNOWN + 1, {"was": "be", "worst": "poor"}),
        vectors,
        np.arange(len(vectors)) % 4,
        matching,
        NetworkWeights(arrays, HEADS),
        {"made": "for tests"},
    )
