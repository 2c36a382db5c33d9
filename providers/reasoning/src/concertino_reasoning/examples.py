"""What `concertino check concertino-reasoning` may call: each agent once, with a model that always answers 42.

The model waits where the text asks it to, so that deadlines and cancellation are checked too.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from concertino import ChatRequest, Model, ModelSpec, Pool, Reply, Usage

_WAIT = "wait for half a minute"
_ANSWER = "<reasoning>\nSix sevens.\n</reasoning>\n<answer>\n\\boxed{42}\n</answer>"


class Obliging(Model):
    """Answers 42 in whatever form is asked for, approves everything, and waits when told to."""

    async def chat(self, request: ChatRequest) -> Reply:
        """One of three texts."""
        if any(_WAIT in message.text for message in request.messages):
            await asyncio.sleep(30)
        text = _ANSWER
        if request.schema is not None:
            text = json.dumps({"found": True, "value": "42", "quote": "six times seven is 42"})
        elif any("<verdict>" in message.text for message in request.messages):
            text = "<feedback>It holds.</feedback>\n<verdict>correct</verdict>"
        return Reply(text, usage=Usage(input_tokens=20, output_tokens=20))


def make_pool() -> Pool:
    """A pool with the obliging model in every role."""
    roles = dict.fromkeys(("default", "critic", "moderator", "summariser"), "obliging")
    return Pool([ModelSpec("obliging", Obliging)], roles=roles)


def _says_42(content: Any) -> bool:
    return isinstance(content, str) and "\\boxed{42}" in content


def _subject(arguments: dict[str, Any], *rejected: dict[str, Any], task: str = "subtask") -> dict[str, Any]:
    return {
        "examples": [(arguments, _says_42)],
        "rejected": [{**arguments, "model": 7}, *rejected],
        "failing": [{**arguments, "model": "nobody"}],
        "slow": {**arguments, task: _WAIT},
        "make_pool": make_pool,
    }


_TASK = {"subtask": "What is six times seven?"}
_ROLES = {**_TASK, "roles": ["optimist", "accountant"]}
_TEXT = {"text": "It is said that six times seven is 42.", "wanted": "the product"}

_OF_A_RUN: dict[str, Any] = {
    "examples": [({}, _says_42)],
    "failing": [{"model": "nobody"}],
    "make_pool": make_pool,
    "question": "What is six times seven?",
}

concertino_examples: dict[str, Any] = {
    "cot": _subject(_TASK),
    "self_consistency": _subject(_TASK, {"subtask": 3}),
    "debate": _subject(_ROLES, _TASK, {**_TASK, "roles": ["alone"]}, {**_TASK, "roles": "a, b"}),
    "reflexion": _subject(_TASK),
    "standard_reasoner": _subject(_TASK),
    "critical_reviewer": {**_subject(_TASK), "examples": [(_TASK, lambda content: "42" in content)]},
    "ensemble_solver": {**_OF_A_RUN, "rejected": [{"model": 7}, {"subtask": "a task of its own"}]},
    "conclude": {**_OF_A_RUN, "rejected": [{"model": 7}]},
    "extract": _subject(_TEXT, {"wanted": "the product"}, {"text": ""}, task="text"),
}
"""By agent. `ensemble_solver` and `conclude` work on the question of a run."""
