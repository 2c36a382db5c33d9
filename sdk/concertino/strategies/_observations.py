"""Observations as an orchestrator reads them: one line of JSON each, and what is left of the budget.

Invariant: nothing in a result can be taken for a mark of the frame around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from concertino._observation import Observation

from ._history import count_tokens, cut

_MARKS = re.compile(r"<(?=/?(?:tool_response|tool_call|budget)\b)")
"""Marks of the frame that a result could forge; written as a JSON escape, they stay text."""

_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for every observation


def render_observation(observation: Observation, visible_name: str = "", tokens: int | None = None) -> str:
    """One observation as the orchestrator reads it: one line of JSON, its content cut to so many tokens."""
    data: dict[str, Any] = {
        "id": observation.call_id,
        "name": visible_name or observation.name,
        "status": observation.status.value,
    }
    if observation.content is not None:
        data["content"] = observation.content if tokens is None else _cut(observation.content, tokens)
    if observation.error is not None:
        data["error"] = observation.error.to_json()
    if observation.repairs:
        data["repaired"] = list(observation.repairs)
    return _MARKS.sub(r"\\u003c", _encode(data))


def _cut(content: Any, tokens: int) -> Any:
    """Content as it is if it fits; else its text, or its JSON, without the middle."""
    text = content if isinstance(content, str) else _encode(content)
    return content if count_tokens(text) <= tokens else cut(text, tokens)


def render_round(
    observations: Sequence[Observation],
    names: Sequence[str],
    remaining: Mapping[str, float] | None,
    tokens: int | None = None,
) -> str:
    """All observations of a round in one message, each cut to so many tokens, and what is left of the budget."""
    blocks = [
        f"<tool_response>\n{render_observation(observation, name, tokens)}\n</tool_response>"
        for observation, name in zip(observations, names, strict=True)
    ]
    return "\n".join(blocks) + render_remaining(remaining)


def render_remaining(remaining: Mapping[str, float] | None) -> str:
    """What is left of the budget, or nothing."""
    return f"\n<budget>{_encode(dict(remaining))}</budget>" if remaining else ""
