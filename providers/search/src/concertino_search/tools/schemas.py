"""The arguments that both searches take, so that an agent can call either the same way."""

from __future__ import annotations

from typing import Any


def queries_schema(max_queries: int, query_chars: int, top_k: int, max_top_k: int, unit: str) -> dict[str, Any]:
    """The schema of `queries` and `top_k`.

    Args:
        max_queries: queries of one call, at most.
        query_chars: characters of one query, at most.
        top_k: the default.
        max_top_k: the most that can be asked for.
        unit: what is counted, `passages` or `results`.
    """
    query = {"type": "string", "minLength": 1, "maxLength": query_chars, "pattern": "\\S"}
    return {
        "type": "object",
        "properties": {
            "queries": {
                "type": "array",
                "items": query,
                "minItems": 1,
                "maxItems": max_queries,
                "description": "what to look for; each is searched on its own.",
            },
            "top_k": {
                "type": "integer",
                "minimum": 1,
                "maximum": max_top_k,
                "default": top_k,
                "description": f"{unit} per query.",
            },
        },
        "required": ["queries"],
        "additionalProperties": False,
    }
