"""What a policy samples, as a request to a server and as its answer: ids in, ids and log-probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from concertino import FailureClass, ProviderError, Sampling


@dataclass(frozen=True)
class PolicyGeneration:
    """What a policy sampled.

    Attributes:
        prompt_ids: what it was shown.
        token_ids: what it sampled, the end-of-text token included.
        logprobs: of each of these, under the model as it is (not divided by the temperature), unless the server was
            started with another `--logprobs-mode`.
        text: the same as text.
        finish_reason: `stop` or `length`.
        version: which weights or adapter it was.
        model: the name that the server knows it by.
        cached_tokens: ids of the prompt that came from the prefix cache; None if the server does not tell.
    """

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: str
    version: int
    model: str
    cached_tokens: int | None = None


def completion_body(model: str, prompt_ids: Sequence[int], sampling: Sampling, salt: str) -> dict[str, Any]:
    """A request that leaves nothing to the model's own generation settings."""
    body: dict[str, Any] = {
        "model": model,
        "prompt": list(prompt_ids),
        "logprobs": 0,
        "return_token_ids": True,
        # vLLM takes what a request leaves out from the model's generation_config.json.
        "temperature": 1.0 if sampling.temperature is None else sampling.temperature,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "max_tokens": sampling.max_tokens,
    }
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if salt:
        body["cache_salt"] = salt
    return body


def read_completion(answer: Any, prompt_ids: tuple[int, ...], version: int) -> PolicyGeneration:
    """The generation in an answer.

    Raises:
        ProviderError: ids are missing, were changed, or do not fit the log-probabilities.
    """
    choice = answer["choices"][0]
    token_ids = choice.get("token_ids")
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
    if token_ids is None or logprobs is None:
        raise ProviderError(
            "the server gives no token ids or no log-probabilities; expected vLLM 0.11 or newer",
            failure=FailureClass.CALLER,
        )
    shown = choice.get("prompt_token_ids")
    if shown is not None and tuple(shown) != prompt_ids:
        raise ProviderError("the server changed the ids of the prompt", failure=FailureClass.CALLER)
    if len(token_ids) != len(logprobs):
        raise ProviderError(
            f"{len(token_ids)} ids came with {len(logprobs)} log-probabilities", failure=FailureClass.CALLER
        )
    if choice.get("finish_reason") not in ("stop", "length"):
        raise ProviderError(
            f"the generation was cut off after {len(token_ids)} ids ({choice.get('finish_reason')})",
            failure=FailureClass.CUT_OFF,
        )
    details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
    return PolicyGeneration(
        prompt_ids,
        tuple(token_ids),
        tuple(logprobs),
        choice.get("text", ""),
        choice["finish_reason"],
        version,
        str(answer.get("model", "")),
        details.get("cached_tokens"),
    )
