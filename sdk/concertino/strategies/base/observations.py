"""Observations as an orchestrator reads them: one line each, and what is left of the budget.

A line is JSON, or in a brief prompt its short form: `1 OK 14`, `2 EXEC_ERR raised: it broke`. A text there stands as it
is, unless something in it could be misread: a line break, a mark of the frame, a blank or a quotation mark at its
begin. It is then a JSON string.

Invariant: nothing in a result can be taken for a mark of the frame around it, for a control token, or for the line of
another result (`concertino.text.foreign_text`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from concertino.core.late import LateMessage, any_late
from concertino.core.model import Message
from concertino.core.observation import Observation
from concertino.text.foreign_text import FOREIGN, Quoting

from .brief_prompt import PromptForm
from .history import count_tokens, cut

_NO_LINE = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
_OPEN_ENDED = re.compile(r'\A(?:["\s]|\Z)|\s\Z')

_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for every observation


def render_observation(
    observation: Observation, visible_name: str = "", tokens: int | None = None, quoting: Quoting = FOREIGN
) -> str:
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
    return quoting.json(_encode(data))


def _cut(content: Any, tokens: int) -> Any:
    """Content as it is if it fits; else its text, or its JSON, without the middle."""
    text = content if isinstance(content, str) else _encode(content)
    return content if count_tokens(text) <= tokens else cut(text, tokens)


def render_line(observation: Observation, label: str, tokens: int | None = None, quoting: Quoting = FOREIGN) -> str:
    """One observation in the short form.

    Args:
        label: what the model knows the call by.
        tokens: to which its content is cut; `None` shows all of it.
        quoting: of the prompt that it stands in.
    """
    parts = [label, observation.status.value]
    if observation.error is not None:
        parts.append(_on_one_line(f"{observation.error.code}: {' '.join(observation.error.message.split())}", quoting))
    if (content := observation.content) is not None:
        parts += [] if observation.error is None else ["so far:"]
        parts.append(_on_one_line(content if tokens is None else _cut(content, tokens), quoting))
    return " ".join(parts)


def _on_one_line(content: Any, quoting: Quoting) -> str:
    """A text as it is, if nothing in it can be misread; else JSON."""
    if isinstance(content, str) and not (
        _NO_LINE.search(content) or _OPEN_ENDED.search(content) or quoting.marked(content)
    ):
        return content
    return quoting.json(_encode(content))


def render_each(
    observations: Sequence[Observation],
    names: Sequence[str],
    tokens: int | None = None,
    prompt: PromptForm = "full",
    quoting: Quoting = FOREIGN,
) -> list[str]:
    """The line of each observation of a round.

    Args:
        names: visible names of the members, or in a brief prompt what the model knows the calls by.
        tokens: to which each content is cut; `None` shows all of it.
        prompt: the form of the prompt, which that of the lines follows.
        quoting: of the prompt that they stand in.
    """
    render = render_line if prompt == "brief" else render_observation
    return [render(observation, name, tokens, quoting) for observation, name in zip(observations, names, strict=True)]


def render_round(
    observations: Sequence[Observation],
    names: Sequence[str],
    remaining: Mapping[str, float] | None,
    tokens: int | None = None,
    prompt: PromptForm = "full",
    quoting: Quoting = FOREIGN,
) -> str:
    """All observations of a round in one message, and what is left of the budget; see `render_each`.

    Each has a block of its own, or in a brief prompt only a line of one block.
    """
    lines = render_each(observations, names, tokens, prompt, quoting)
    blocks = ["\n".join(lines)] if prompt == "brief" else lines
    return "\n".join(f"<tool_response>\n{block}\n</tool_response>" for block in blocks) + render_remaining(remaining)


def round_message(
    observations: Sequence[Observation],
    names: Sequence[str],
    remaining: Mapping[str, float] | None,
    tokens: int | None = None,
    prompt: PromptForm = "full",
    quoting: Quoting = FOREIGN,
) -> Message:
    """The message of `render_round`; made when somebody needs its text, if the results have to be read for it."""
    make = partial(render_round, observations, list(names), remaining, tokens, prompt, quoting)
    return LateMessage.of_late("user", make) if any_late(observations) else Message("user", make())


def render_remaining(remaining: Mapping[str, float] | None) -> str:
    """What is left of the budget, or nothing."""
    return f"\n<budget>{_encode(dict(remaining))}</budget>" if remaining else ""
