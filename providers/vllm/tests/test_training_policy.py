"""concertino-train's policy on the real vLLM that the tests of this provider share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino import ModelSpec, UsageError
from concertino_vllm import SwapError

train = pytest.importorskip("concertino_train.policies", reason="concertino-train is not installed")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.server

EXACT = 1e-3
"""Log-probabilities of equal weights in float32 are nearer than this."""


def load(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    return AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()


@pytest.fixture
def policy(vllm_policy: ModelSpec, tiny_model: Path) -> Iterator[Any]:
    """On the shared server. Other tests of it begin by giving it the weights that they want."""
    from concertino_local.codec import ChatCodec

    made = train.VLLMPolicy(vllm_policy, ChatCodec.load(tiny_model, "chatml"), tolerance=EXACT)
    yield made
    made.close()


def test_a_served_policy_samples_with_the_numbers_of_the_model_in_this_process_and_follows_its_weights(
    policy: Any, tiny_model: Path
) -> None:
    from concertino_train.policies.transformers import score

    folders = {"new": tiny_model.parent / "tiny-changed", "old": tiny_model}
    models = {name: load(folder) for name, folder in folders.items()}
    # Noise: behind a question, this model is sure of every token.
    prompts = [train.Prompt(tuple(3 + 7 * seed + 5 * n for n in range(30)), 8, seed=seed) for seed in range(6)]
    said: dict[str, Any] = {}
    for name, folder in folders.items():
        policy._reference = models[name]
        version = policy.version
        assert policy.update(folder) < EXACT
        assert policy.version > version
        said[name] = policy.generate(prompts)
        for prompt, sample in zip(prompts, said[name], strict=True):
            numbers = score(models[name], prompt.ids, sample.ids, 1.0)
            assert max(abs(a - b) for a, b in zip(sample.logprobs, numbers, strict=True)) < EXACT
            assert (sample.finish == "stop") == (sample.ids[-1] in policy.codec.end_ids)
        assert min(number for sample in said[name] for number in sample.logprobs) < -0.1
    assert said["new"] != said["old"]

    policy._reference = models["new"]
    with pytest.raises(SwapError, match="other log-probabilities than the model in this process"):
        policy.update(folders["old"])
    with pytest.raises(SwapError):
        policy.generate(prompts)
    policy._reference = models["old"]
    assert policy.update(folders["old"]) < EXACT
    policy.temperature = 0.7
    with pytest.raises(UsageError, match="processed_logprobs"):
        policy.generate(prompts)
