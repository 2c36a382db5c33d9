"""Earlier turns of a conversation, as a run is told of them.

    first = await leader.run("How warm is it in Bergen?", pool=pool)
    second = await leader.run("And tomorrow?", pool=pool, history=first)

A history is a run, a list of messages, or a `Session`. Whatever it is, a run gets a list of messages in which a user
and an assistant take turns. What the calls of an earlier run returned stands below its question, so that it can be
referred to. Pool and strategy may change from turn to turn: a history holds no format of any strategy.

Invariant: a history is plain data, recorded with the run that was given it, so a resumed run remembers it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from concertino.core.errors import UsageError
from concertino.core.model import Message
from concertino.core.plan import unparse
from concertino.strategies.base.history import OBSERVED, cut

if TYPE_CHECKING:
    from .run import Run

OBSERVATION_TOKENS = 200
"""Tokens to which the result of an earlier call is cut."""
_FORM = "a Run, a Session, or a list of messages such as Message('user', ...) and {'role': 'user', 'content': ...}"


def read_history(given: Any) -> tuple[Message, ...]:
    """The messages of earlier turns.

    Args:
        given: a run, a session, messages, or None for the first turn.

    Raises:
        UsageError: it is something else; says what was given and what is expected.
    """
    from .run import Run
    from .session import Session

    if given is None:
        return ()
    if isinstance(given, Session):
        return given.messages
    if isinstance(given, Run):
        return after_run(given)
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
        raise UsageError(f"history={_shown(given)}: expected {_FORM}")
    return tuple(_folded([_message(item, place) for place, item in enumerate(given)]))


def after_run(run: Run) -> tuple[Message, ...]:
    """The history after a run: what the run was given, and its own turn."""
    earlier = tuple(Message.from_json(item) for item in run.setup.get("history", ()))
    question = run.question + observed_text(run)
    return (*earlier, Message("user", question), Message("assistant", said_by(run.answer, run.stop)))


def said_by(answer: str | None, stop: str) -> str:
    """What a run said, as a later turn reads it."""
    return answer or f"(no answer: {stop})"


def observed_text(run: Run) -> str:
    """What the calls of a run returned, as it stands below its question; empty without calls."""
    lines = []
    for turn in run.rounds:
        for call, seen in zip(turn.plan.calls, turn.observations, strict=False):
            arguments = json.dumps(unparse(call.arguments), ensure_ascii=False)
            result = seen.error.message if seen.error is not None else json.dumps(seen.content, ensure_ascii=False)
            what = f"{cut(arguments, OBSERVATION_TOKENS)} {seen.status.value}: {cut(result, OBSERVATION_TOKENS)}"
            lines.append(f"{seen.call_id} {call.name} {what}")
    return OBSERVED + "\n".join(lines) if lines else ""


def _message(item: Any, place: int) -> Message:
    if isinstance(item, Message):
        message = item
    elif isinstance(item, Mapping) and isinstance(item.get("role"), str):
        text = item.get("content", item.get("text", ""))
        if isinstance(text, list):
            text = "\n".join(str(part["text"]) for part in text if isinstance(part, Mapping) and "text" in part)
        message = Message(item["role"], text if isinstance(text, str) else "")
    else:
        raise UsageError(f"history[{place}]={_shown(item)}: expected {_FORM}")
    if message.role == "system":
        raise UsageError(f"history[{place}] is a system message; give its text as instructions=")
    if message.role not in ("user", "assistant", "tool"):
        raise UsageError(f"history[{place}] has the role {message.role!r}; expected 'user', 'assistant' or 'tool'")
    return message


def _folded(messages: Iterable[Message]) -> list[Message]:
    """User and assistant in turn: results of calls stand below the question before them, and calls are left out."""
    found: list[Message] = []
    for message in messages:
        if message.role == "assistant" and not message.text.strip():
            continue  # it only called something, and what that returned follows
        if message.role == "tool":
            asked = max((place for place, known in enumerate(found) if known.role == "user"), default=-1)
            if asked < 0:
                continue
            text = found[asked].text
            more = cut(message.text, OBSERVATION_TOKENS)
            found[asked] = Message("user", f"{text}\n{more}" if OBSERVED in text else f"{text}{OBSERVED}{more}")
        elif found and found[-1].role == message.role:
            found[-1] = Message(message.role, f"{found[-1].text}\n\n{message.text}")
        else:
            found.append(Message(message.role, message.text))
    if found and found[0].role == "assistant":
        found.insert(0, Message("user", "(the conversation begins)"))
    return found


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
