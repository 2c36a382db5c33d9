"""What a vLLM server says about itself on `/metrics`, as one typed value."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SAMPLE = re.compile(r"^vllm:(\w+)(?:\{[^}]*\})? (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class ServerMetrics:
    """Counters and gauges, added up over a server's engines.

    Attributes:
        running: requests that are being worked on.
        waiting: requests that wait in the server.
        kv_cache_usage: share of the KV cache in use, 0 to 1; the highest of the engines.
        prompt_tokens: tokens of all prompts so far.
        generation_tokens: tokens generated so far.
        prefix_queries: prompt tokens that were looked up in the prefix cache so far.
        prefix_hits: prompt tokens that were found there.
        preemptions: how often a request was put back for want of memory.
    """

    running: int = 0
    waiting: int = 0
    kv_cache_usage: float = 0.0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    preemptions: int = 0

    @property
    def prefix_hit_rate(self) -> float:
        """Share of prompt tokens that came from the cache, 0 to 1."""
        return self.prefix_hits / self.prefix_queries if self.prefix_queries else 0.0


_FIELDS = {
    "num_requests_running": "running",
    "num_requests_waiting": "waiting",
    "kv_cache_usage_perc": "kv_cache_usage",
    "prompt_tokens_total": "prompt_tokens",
    "generation_tokens_total": "generation_tokens",
    "prefix_cache_queries_total": "prefix_queries",
    "prefix_cache_hits_total": "prefix_hits",
    "num_preemptions_total": "preemptions",
}


def read_metrics(text: str) -> ServerMetrics:
    """Read the Prometheus text format.

    Raises:
        ValueError: the text is not that of a vLLM server.
    """
    values: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        if field := _FIELDS.get(name):
            number = float(value)
            values[field] = (
                max(values.get(field, 0.0), number) if name.endswith("perc") else values.get(field, 0.0) + number
            )
    if "running" not in values:
        raise ValueError(f"no vllm:num_requests_running among the metrics; expected those of vLLM, got {text[:120]!r}")
    usage = values.pop("kv_cache_usage", 0.0)
    return ServerMetrics(kv_cache_usage=usage, **{field: int(value) for field, value in values.items()})
