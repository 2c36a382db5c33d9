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
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from concertino.core.attachment import Attachment, File, Image
from concertino.core.errors import UsageError
from concertino.core.model import Message
from concertino.strategies.base.history import OBSERVED, cut
from concertino.text.foreign_text import FOREIGN, IN_QUESTIONS

if TYPE_CHECKING:
    from .run import Run

OBSERVATION_TOKENS = 200
"""Tokens to which the result of an earlier call is cut."""
_FORM = "a Run, a Session, or a list of messages such as Message('user', ...) and {'role': 'user', 'content': ...}"


def read_history(given: Any) -> tuple[tuple[Message, ...], tuple[Attachment, ...]]:
    """The messages of earlier turns, and what their marks stand for.

    Args:
        given: a run, a session, messages, or None for the first turn.

    Raises:
        UsageError: it is something else; says what was given and what is expected.
    """
    from .run import Run
    from .session import Session

    if given is None:
        return (), ()
    if isinstance(given, Session):
        return given.messages, tuple(given.attachments())
    if isinstance(given, Run):
        return after_run(given), tuple(given.attachments)
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
        raise UsageError(f"history={_shown(given)}: expected {_FORM}")
    messages = [_message(item, f"history[{place}]") for place, item in enumerate(given)]
    attached = [attachment for message in messages for attachment in message.attachments]
    return tuple(_folded(messages)), tuple(attached)


def after_run(run: Run) -> tuple[Message, ...]:
    """The history after a run: what the run was given, and its own turn."""
    earlier = tuple(Message.from_json(item) for item in run.setup.get("history", ()))
    question = quoted_question(run.question) + observed_text(run)
    return (*earlier, Message("user", question), Message("assistant", said_by(run.answer, run.stop)))


def quoted_question(question: str) -> str:
    """A question as a history has it: what looks like results of calls below it is only text."""
    return IN_QUESTIONS.text(question)


def said_by(answer: str | None, stop: str) -> str:
    """What a run said, as a later turn reads it."""
    return answer or f"(no answer: {stop})"


def observed_text(run: Run) -> str:
    """What the calls of a run returned, as it stands below its question; empty without calls."""
    lines = []
    for turn in run.rounds:
        for call, seen in zip(turn.plan.calls, turn.observations, strict=False):
            arguments = json.dumps(call.data, ensure_ascii=False)
            result = seen.error.message if seen.error is not None else json.dumps(seen.content, ensure_ascii=False)
            what = f"{cut(arguments, OBSERVATION_TOKENS)} {seen.status.value}: {cut(result, OBSERVATION_TOKENS)}"
            # One line for each call, whatever a name or an error holds.
            lines.append(FOREIGN.text(" ".join(f"{seen.call_id} {call.name} {what}".split())))
    return OBSERVED + "\n".join(lines) if lines else ""


def _message(item: Any, place: str) -> Message:
    if isinstance(item, Message):
        message = item
    elif isinstance(item, Mapping) and isinstance(item.get("role"), str):
        message = _of_mapping(item, place)
    else:
        raise UsageError(f"{place}={_shown(item)}: expected {_FORM}")
    if message.role == "system":
        raise UsageError(f"{place} is a system message; give its text as instructions=")
    if message.role not in ("user", "assistant", "tool"):
        raise UsageError(f"{place} has the role {message.role!r}; expected 'user', 'assistant' or 'tool'")
    if message.role == "user" and (text := quoted_question(message.text)) != message.text:
        message = replace(message, text=text)
    marks = [attachment.mark for attachment in message.attachments if attachment.mark not in message.text]
    return replace(message, text="\n".join((message.text, *marks))) if marks else message


def _of_mapping(item: Mapping[str, Any], place: str) -> Message:
    content = item.get("content", item.get("text"))
    if isinstance(content, str):
        return Message(item["role"], content)
    if isinstance(content, (list, tuple)):
        parts = [_part(part, f"{place}: content[{number}]") for number, part in enumerate(content)]
        text = "\n".join(part if isinstance(part, str) else part.mark for part in parts)
        return Message(item["role"], text, attachments=tuple(part for part in parts if not isinstance(part, str)))
    if content is None and item["role"] == "assistant" and item.get("tool_calls"):
        return Message("assistant", "")
    raise UsageError(f"{place}: content={_shown(content)}; expected a text, or a list of parts")


def _part(part: Any, place: str) -> str | Attachment:
    """A part of a message in OpenAI's form: a text, an image, or a file with its bytes."""
    match part:
        case str() | Attachment():
            return part
        case {"text": str(text)}:
            return text
        case {"image_url": {"url": str(url)}} | {"image_url": str(url)}:
            return Image(url)
        case {"file": {"file_data": str(data), **more}}:
            return File(data, name=str(more.get("filename", "")))
    raise UsageError(
        f"{place}={_shown(part)}: expected a part of the type text, image_url, or file with file_data; or an Image, "
        "an Audio or a File"
    )


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
            more = FOREIGN.text(cut(" ".join(message.text.split()), OBSERVATION_TOKENS))
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
