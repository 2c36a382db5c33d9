"""What the command line says about a question: attachments by type, instructions, and the schema of the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino.core.documents import why_unusable
from concertino.core.errors import UsageError

if TYPE_CHECKING:
    from concertino.core.attachment import Attachment


def attachment(source: str) -> Attachment:
    """An image, a sound or another file, as its bytes or its name tell; an address is passed on to the model's service.

    Raises:
        UsageError: it cannot be read.
    """
    from concertino.core.attachment import Audio, File, Image

    try:
        file = File(source)
        kinds: dict[str, type[Attachment]] = {"image": Image, "audio": Audio}
        kind = kinds.get(file.media_type.partition("/")[0], File)
        return file if kind is File else kind(source)
    except UsageError as error:
        why = str(error).partition("): ")[2] or str(error)
        raise UsageError(f"--attach {source}: {why}; give a file that can be read, or an address") from None


def with_attachments(question: str, sources: Sequence[str]) -> str | list[str | Attachment]:
    """The question and what is attached to it."""
    return [question, *map(attachment, sources)] if sources else question


def read_text(given: str, option: str) -> str:
    """A text as it stands, or that of a file: `@FILE`.

    Raises:
        UsageError: the file cannot be read as text.
    """
    if not given.startswith("@"):
        return given
    return _text_of(given[1:], f"{option} {given}")


def read_schema(file: Path) -> dict[str, Any]:
    """A JSON Schema from a file.

    Raises:
        UsageError: the file cannot be read, or holds no JSON object; says where.
    """
    place = f"--answer-schema {file}"
    try:
        schema = json.loads(_text_of(str(file), place))
    except json.JSONDecodeError as error:
        raise UsageError(f"{place}: invalid JSON at line {error.lineno}, column {error.colno}: {error.msg}") from None
    if not isinstance(schema, dict):
        got = json.dumps(schema)[:40]
        raise UsageError(f'{place}: expected a JSON Schema, such as {{"type": "object"}}, got {got}')
    return schema


def _text_of(name: str, place: str) -> str:
    try:
        # `utf-8-sig`: PowerShell and Windows editors put a mark at the beginning of a file.
        return Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{place}: {why_unusable(error)}; give a file that can be read") from None
