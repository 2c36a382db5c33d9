"""The record of a run as a reviewer reads it: the orchestrator's messages and the results it got, oldest first.

The orchestrator's conversation is the record once it holds results; before that (a graph of agents is decided at
once, and its results are never shown to the orchestrator) the results that have come in so far are.

Invariant: of calls that run side by side, one sees another's result only where the strategy shows none, and a record
is at most `MOST` characters: older entries are left out first, and how many is said.
"""

from __future__ import annotations

import json

from concertino import Context, Message, Observation
from concertino.text import quoting

from .solutions import shorten

MOST = 24_000
"""Characters of a record."""
_MOST_ENTRY = 6_000
# No line of an entry begins another entry.
_QUOTING = quoting((), (r"\[(?:orchestrator|results|\d+ earlier)\b",))


def write_record(context: Context) -> str:
    """The record so far; empty before anything has happened."""
    conversation = _after_question(context.transcript)
    entries = [_said(message) for message in conversation]
    # A graph's results are never shown to its orchestrator, whose conversation then holds none.
    if not any(message.role in ("user", "tool") for message in conversation):
        entries += [_result(seen) for seen in sorted(context.history, key=lambda seen: (seen.started, seen.call_id))]
    return _fit([entry for entry in entries if entry])


def _after_question(transcript: tuple[Message, ...]) -> list[Message]:
    """The conversation without instructions and without the question, which every agent knows."""
    messages = [message for message in transcript if message.role != "system"]
    return messages[1:] if messages and messages[0].role == "user" else messages


def _said(message: Message) -> str:
    calls = [json.dumps({"call": c.name, "arguments": c.arguments}, ensure_ascii=False) for c in message.tool_calls]
    text = "\n".join(filter(None, [message.text.strip(), *calls]))
    who = "orchestrator" if message.role == "assistant" else "results"
    return f"[{who}]\n{_QUOTING.text(shorten(text, _MOST_ENTRY))}" if text else ""


def _result(seen: Observation) -> str:
    data = {"name": seen.name, "status": seen.status.value}
    if seen.error is not None:
        data["error"] = f"{seen.error.code}: {seen.error.message}"
    content = seen.content if isinstance(seen.content, str) else json.dumps(seen.content, ensure_ascii=False)
    text = content if seen.content is not None else ""
    told = shorten(json.dumps(data, ensure_ascii=False) + chr(10) + text, _MOST_ENTRY).strip()
    return f"[results]\n{_QUOTING.text(told)}"


def _fit(entries: list[str]) -> str:
    kept: list[str] = []
    size = 0
    for entry in reversed(entries):
        size += len(entry) + 2
        if size > MOST:
            break
        kept.insert(0, entry)
    missing = len(entries) - len(kept)
    return "\n\n".join(([f"[{missing} earlier entries left out]"] if missing else []) + kept)
