"""Parameters: the JSON schemas of what an orchestrator decides about a call.

They are written down as schemas, not derived from annotations, so that importing the agents stays quick.
"""

from __future__ import annotations

from typing import Any

SUBTASK = {
    "type": "string",
    "description": "The task, with everything that is needed to solve it. Left out: the run's whole question.",
}
MODEL = {"type": "string", "description": "Role or name of the model that works. Left out: the pool's default."}
ROLES = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": 200},
    "minItems": 2,
    "maxItems": 6,
    "description": "Two to six different points of view, such as 'statistician' and 'sceptic'.",
}
WORK = {
    "type": "string",
    "description": "What to review, such as a claim with its derivation. Left out: all work on the run's question.",
}
TEXT = {
    "type": "string",
    "minLength": 1,
    "description": "The text to take it from, such as the result of another call.",
}
WANTED = {
    "type": "string",
    "description": "What to take out, such as 'the year of the treaty'. Left out: the answer to the run's question.",
}


def arguments(*required: str, **parameters: Any) -> dict[str, Any]:
    """The schema of all arguments of a call."""
    schema = {"type": "object", "properties": parameters, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


TASK = arguments(subtask=SUBTASK, model=MODEL)
"""What most agents take."""
