"""The first answer of new weights, and what has to hold of it; asked with a prompt that is always the same.

vLLM keeps the prefix cache of the old weights across a change, and says nothing of it. So the prompt is long enough for
blocks of the cache, it is asked before the first change, and an answer from the cache gives the mistake away.
"""

from __future__ import annotations

import asyncio
import math

from concertino import ProviderError, Sampling

from concertino_vllm.serving.client import VllmClient

from .generation import PolicyGeneration, completion_body, read_completion

PROBE_TOKENS = 320
"""Ids of the prompt: more than two blocks of the cache on any device."""


async def probe(wire: VllmClient, model: str, seconds: float | None = None) -> PolicyGeneration:
    """Ask the prompt."""
    listed = (await wire.get("/v1/models"))["data"]
    longest = next((card.get("max_model_len") for card in listed if card.get("max_model_len")), None) or PROBE_TOKENS
    # Ids so low are in every vocabulary.
    ids = tuple(1 + number % 50 for number in range(min(PROBE_TOKENS, longest - 4)))
    body = completion_body(model, ids, Sampling(temperature=0, max_tokens=2), "")
    return read_completion(await wire.post("/v1/completions", body, seconds=seconds), ids, 0)


async def check_first_answer(wire: VllmClient, model: str, seconds: float) -> None:
    """Ask for the first time after a change.

    Raises:
        ProviderError: the numbers are no numbers, or come out of the old cache.
    """
    answer = await probe(wire, model, seconds)
    if not all(math.isfinite(value) for value in answer.logprobs):
        raise ProviderError(f"the new weights answer with log-probabilities that are no numbers: {answer.logprobs}")
    if answer.cached_tokens:
        raise ProviderError(f"{answer.cached_tokens} ids of a prompt still come from the cache of the old weights")


async def empty_cache(wire: VllmClient) -> None:
    """Empty the prefix cache.

    Raises:
        ProviderError: blocks of it are held by requests under way.
    """
    # vLLM frees the blocks of a request shortly after its answer.
    for wait in (0.0, 0.05, 0.2, 0.5):
        await asyncio.sleep(wait)
        if (await wire.post("/reset_prefix_cache", seconds=60))["success"]:
            return
    raise ProviderError("the prefix cache cannot be emptied while requests hold blocks of it; pause() first")
