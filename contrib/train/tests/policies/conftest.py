"""Random models that are sampled from, and the numbers of their forward passes."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from concertino_local.codec import ByteCodec, Ids
from concertino_train.policies import Sample

os.environ.setdefault("HF_HUB_OFFLINE", "1")
torch = pytest.importorskip("torch", reason="torch is not installed; policies need it")

VOCABULARY = 259


class Codec(ByteCodec):
    """Bytes, with ends of one's own."""

    def __init__(self, *ends: int) -> None:
        self.end_ids = ends or ByteCodec.end_ids


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def network(kind: str = "qwen3", **changes: Any) -> Any:
    """A random model of two layers; its numbers are so large that it is sure of some tokens and not of others."""
    import transformers as hf

    torch.manual_seed(0)
    size = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2}
    shared = {**size, "num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 512}
    wide = {"initializer_range": 0.3, "eos_token_id": None, "pad_token_id": 258, "bos_token_id": None}
    window = {"sliding_window": 8, "head_dim": 8}
    made = {
        "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**{**shared, "head_dim": 8, **wide, **changes})),
        "gpt2": lambda: hf.GPT2LMHeadModel(
            hf.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_head=4, n_layer=2, n_positions=512, **wide)
        ),
        "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(**{**shared, **wide, **window})),
        "gemma3": lambda: hf.Gemma3ForCausalLM(
            hf.Gemma3TextConfig(
                **{**shared, **wide, **window, "layer_types": ["sliding_attention", "full_attention"]},
                query_pre_attn_scalar=8,
            )
        ),
    }[kind]()
    return made.eval()


@pytest.fixture(scope="module")
def model() -> Any:
    return network()


def numbers(count: int, seed: int = 0) -> Ids:
    draw = random.Random(seed)
    return tuple(draw.randrange(256) for _ in range(count))


def forward(model: Any, prompt: Ids, sampled: Ids, temperature: float = 1.0) -> list[float]:
    """Log-probabilities of sampled tokens in one pass over everything."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *sampled]])).logits[0].float() / temperature
    at = torch.arange(len(prompt) - 1, len(prompt) + len(sampled) - 1)
    found: list[float] = logits.log_softmax(-1)[at, torch.tensor(sampled)].tolist()
    return found


def furthest(one: Sample, numbers: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(one.logprobs, numbers, strict=True))
