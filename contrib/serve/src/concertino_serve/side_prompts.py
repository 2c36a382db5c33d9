"""Side prompts: what chat pages ask beside the conversation, such as a title, tags, or questions to go on with.

A page sends them to the model of the conversation, like any question, and each would be a run of many calls. A preset
with a `side_model` has that model alone answer them.

Invariant: a question of a user is never taken for one. Either the request says what it is, or its one message has the
form that Open WebUI gives such prompts from its first line to its last, with the conversation quoted inside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAMED = frozenset(
    {
        "title_generation",
        "tags_generation",
        "follow_up_generation",
        "emoji_generation",
        "query_generation",
        "image_prompt_generation",
        "autocomplete_generation",
    }
)
"""What `metadata.task` of a request may say."""
_FORM = re.compile(r"### Task:\n.+\n### Chat History:\n<chat_history>\n.*\n</chat_history>", re.DOTALL)


def is_side_prompt(body: Mapping[str, Any]) -> bool:
    """Whether the body of a chat is a side prompt."""
    metadata, messages = body.get("metadata"), body.get("messages")
    if isinstance(metadata, Mapping) and str(metadata.get("task")) in _NAMED:
        return True
    if body.get("tools") or not isinstance(messages, list) or len(messages) != 1:
        return False
    content = messages[0].get("content") if isinstance(messages[0], Mapping) else None
    return isinstance(content, str) and _FORM.fullmatch(content.strip()) is not None
