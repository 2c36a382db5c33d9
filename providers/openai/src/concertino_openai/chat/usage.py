"""The usage that a server reports, as concertino's `Usage`.

Cached tokens are a part of the prompt, reasoning tokens a part of the reply, as in `concertino.Usage`; a server that
counts thoughts beside the reply is recognised by its total. Only a server that states a cost sets `usd`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from concertino import ChatRequest, Usage


def read_usage(reported: Mapping[str, Any]) -> Usage:
    """The usage of a reply."""
    prompt = _count(reported, "prompt_tokens")
    completion = _count(reported, "completion_tokens")
    # A server that counts thoughts beside the reply shows them only in its total.
    output = max(completion, _count(reported, "total_tokens") - prompt)
    of_prompt = reported.get("prompt_tokens_details")
    of_completion = reported.get("completion_tokens_details")
    # The second name is DeepSeek's.
    cached = _count(of_prompt, "cached_tokens") or _count(reported, "prompt_cache_hit_tokens")
    written = _count(of_prompt, "cache_write_tokens")
    reasoning = _count(of_completion, "reasoning_tokens") or _count(reported, "reasoning_tokens")
    cost: Any = reported.get("cost")
    return Usage(
        usd=float(cost) if type(cost) in (int, float) and 0 <= cost < float("inf") else 0.0,
        input_tokens=prompt,
        output_tokens=output,
        cached_tokens=min(cached, prompt),
        cache_write_tokens=min(written, max(0, prompt - cached)),
        reasoning_tokens=min(reasoning, output),
    )


def estimate_usage(request: ChatRequest, written: str, count: Callable[[str], int]) -> Usage:
    """The usage of a request whose server reports none: an estimate, marked as one."""
    # A chat template adds about four tokens to each message: its role and its marks.
    asked = sum(count(message.text) + 4 for message in request.messages)
    if request.tools:
        asked += count(json.dumps(request.tools))
    answered = count(written) if written else 0
    if request.sampling.max_tokens is not None:
        answered = min(answered, request.sampling.max_tokens)
    return Usage(input_tokens=asked, output_tokens=answered, estimated=1)


def _count(data: Any, name: str) -> int:
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if type(value) is int and value > 0 else 0
