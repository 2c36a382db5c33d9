"""What `concertino check` drives the baselines with: models offered as agents, and a small graph. Plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["concertino_examples"]

_PROFILE = Path(__file__).parent / "baselines" / "example_profile.json"
"""Outcomes of two models on three questions."""


def _model(name: str) -> dict[str, Any]:
    """A model offered as an agent, as a pool renders it."""
    task = {"type": "object", "properties": {"task": {"type": "string"}}, "required": ["task"]}
    return {"type": "function", "function": {"name": name, "description": f"Ask {name}.", "parameters": task}}


_MODELS = [_model("ask_small"), _model("ask_large")]
_GRAPH = {
    "agents": [
        {"id": "a", "name": "ask_small", "arguments": {"task": "{question}"}},
        {"id": "b", "name": "ask_large", "arguments": {"task": "{question} A first answer: ${a}"}},
    ],
    "edges": [["a", "b"]],
}

concertino_examples: dict[str, Any] = {
    "majority-vote": {"tools": _MODELS},
    "knn-router": {"tools": _MODELS, "strategy": {"profile": str(_PROFILE)}},
    "cascade": {"tools": _MODELS},
    "static-workflow": {"tools": _MODELS, "strategy": {"graph": _GRAPH}},
}
