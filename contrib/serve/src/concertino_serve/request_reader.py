"""From the body of a request to a question with its earlier turns.

Invariant: nothing that a client writes names a file of this machine or an address that this machine opens. An image or
a file comes as bytes in the request (`data:`), or, an image alone, as an `https://` address that is passed on to the
model's service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from concertino import Audio, File, Image
from concertino.core.attachment import Attachment
from concertino.core.errors import UsageError
from concertino.core.model import Message

from .api_error import ApiError
from .call_answers import CallAnswers, GivenAnswer

Part = str | Attachment
_ROLES = {"user": "user", "assistant": "assistant", "tool": "tool", "system": "system", "developer": "system"}
_MOST_MESSAGES = 2000
_INSIDE = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "arpa")
"""Last parts of names that lead nowhere outside."""


@dataclass(frozen=True)
class Conversation:
    """What is asked.

    Attributes:
        history: the earlier turns.
        instructions: the system messages.
        answers: for calls of a suspended run that continues; nothing else is asked then.
        blocked: why no run may begin, unless the request joins one.
    """

    question: list[Part]
    history: list[Message]
    instructions: str
    answers: CallAnswers | None = None
    blocked: ApiError | None = None


def read_messages(messages: Any, name: str = "messages") -> Conversation:
    """The conversation of a list of messages; the last one is the question, or the last ones are results of calls.

    Raises:
        ApiError: something in it is not as expected; says what and where.
    """
    if not isinstance(messages, list) or not messages or len(messages) > _MOST_MESSAGES:
        raise _wrong(name, "expected a list of messages, the last of them the user's")
    read = [_message(message, f"{name}[{place}]") for place, message in enumerate(messages)]
    if all(role == "system" for role, _ in read):
        read[-1] = "user", read[-1][1]  # nobody else has said anything, so it is what is asked
    instructions = "\n\n".join(_text(parts) for role, parts in read if role == "system")
    turns = [(role, parts) for role, parts in read if role != "system"]
    if read[-1][0] == "tool":
        return Conversation([], [], instructions, CallAnswers.of(_answers(messages, read, name)))
    if not turns or turns[-1][0] != "user":
        raise _wrong(name, "the last message is not the user's, so there is no question")
    if not _text(turns[-1][1]).strip():
        raise _wrong(name, "the last message is empty")
    history = [_turn(role, parts) for role, parts in turns[:-1]]
    return Conversation(turns[-1][1], history, instructions)


def _answers(messages: list[Any], read: list[tuple[str, list[Part]]], name: str) -> list[GivenAnswer]:
    """The results at the end of the messages."""
    begin = next((place for place in range(len(read), 0, -1) if read[place - 1][0] != "tool"), 0)
    found = []
    for place in range(begin, len(read)):
        message, parts = messages[place], read[place][1]
        if not all(isinstance(part, str) for part in parts):
            raise _wrong(f"{name}[{place}]", "the result of a call is a text")
        answer = flag(message, "approve") if "approve" in message else _text(parts)
        found.append(GivenAnswer(str(message.get("tool_call_id")), answer, f"{name}[{place}]"))
    return found


def _message(message: Any, where: str) -> tuple[str, list[Part]]:
    if not isinstance(message, Mapping):
        raise _wrong(where, "expected an object with role and content")
    role = _ROLES.get(str(message.get("role")))
    if role is None:
        raise _wrong(f"{where}.role", f"{message.get('role')!r}; expected {', '.join(_ROLES)}")
    content = message.get("content")
    if content is None and role == "assistant":
        return role, []
    if isinstance(content, str):
        return role, [content]
    if not isinstance(content, list):
        raise _wrong(f"{where}.content", "expected a text or a list of parts")
    return role, [_part(part, f"{where}.content[{place}]") for place, part in enumerate(content)]


def _part(part: Any, where: str) -> Part:
    """A part in the form of either API."""
    try:
        match part:
            case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
                return text
            case {"type": "refusal", "refusal": str(text)}:
                return text
            case {"type": "image_url", "image_url": {"url": str(url)}} | {"type": "input_image", "image_url": str(url)}:
                return Image(_given_address(url, where))
            case {"type": "file", "file": {"file_data": str(data), **more}}:
                return File(_given_bytes(data, where), name=str(more.get("filename", "")))
            case {"type": "input_file", "file_data": str(data), **more}:
                return File(_given_bytes(data, where), name=str(more.get("filename", "")))
            case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(kind)}}:
                return Audio(f"data:audio/{'mpeg' if kind == 'mp3' else kind};base64,{data}")
    except UsageError as error:
        raise _wrong(where, str(error)) from error
    raise _wrong(where, "expected a part of the type text, image_url, file with file_data, or input_audio")


def _given_address(url: str, where: str) -> str:
    if not url.startswith("https://"):
        return _given_bytes(url, where)
    if not _is_public(url):
        raise _wrong(where, "expected the name of a public server, or the bytes as an address that begins with data:")
    return url


def _is_public(url: str) -> bool:
    """Whether an address is that of a named server outside: who opens it may stand inside this network."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    labels = host.split(".")
    # Without a letter in its last label a host is an address, however it is written; so is one with a colon.
    named = len(labels) > 1 and labels[-1].isascii() and labels[-1].replace("-", "").isalnum()
    return named and not labels[-1].startswith(("0x", *"0123456789")) and labels[-1] not in _INSIDE


def _given_bytes(url: str, where: str) -> str:
    # Anything else would be taken for the path of a file on this machine.
    if not url.startswith("data:"):
        raise _wrong(where, "expected the bytes as an address that begins with data:")
    return url


def _text(parts: Sequence[Part]) -> str:
    return "\n".join(part if isinstance(part, str) else part.mark for part in parts)


def _turn(role: str, parts: Sequence[Part]) -> Message:
    attached = tuple(part for part in parts if not isinstance(part, str))
    match role:
        case "user":
            return Message("user", _text(parts), attachments=attached)
        case "assistant":
            return Message("assistant", _text(parts))
    return Message("tool", _text(parts))


def read_schema(given: Any, name: str) -> Mapping[str, Any] | None:
    """The schema of the answer that a client asks for; None for a text.

    Raises:
        ApiError: it is none.
    """
    match given:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return {"type": "object"}
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:  # chat completions
            return schema
        case {"type": "json_schema", "schema": dict(schema)}:  # responses
            return schema
    raise _wrong(name, "expected the type text, json_object, or json_schema with a schema")


def refuse_fields(body: Mapping[str, Any], refused: Mapping[str, str]) -> None:
    """Refuse what would be silently ignored.

    Raises:
        ApiError: the body has such a field; says why it cannot be.
    """
    for name, why in refused.items():
        if body.get(name):
            raise _wrong(name, why)


def flag(body: Mapping[str, Any], name: str) -> bool:
    """A field that is true, false, or not there.

    Raises:
        ApiError: it is something else.
    """
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise _wrong(name, "expected true or false")
    return bool(value)


def _wrong(name: str, why: str) -> ApiError:
    return ApiError(400, f"{name}: {why}", param=name, code="invalid_value")
