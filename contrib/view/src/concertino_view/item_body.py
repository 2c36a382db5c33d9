"""What one item holds, for the reader who opens it: titled sections of texts, in the order of its records.

A section is `[title, text, marks]`; a mark is `[start, end, message]` and stands for a format issue at its place in the
text. A section of tokens has a fourth part, `{"read", "logprobs", "ids"}`. Invariants: marks are given only where the
text is shown exactly as the model wrote it; else they are a section. Ids of tokens, which are the text in another form,
are given only where nothing of the text is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .shown_texts import ShownTexts

Section = list[Any]
Record = Mapping[str, Any]


def body_of(records: Iterable[Record], texts: ShownTexts, item_id: str) -> list[Section]:
    """The sections of an item. Of a plan, what its call holds, or what its request has to answer for."""
    found: list[Section] = []
    reply = ""
    for record in records:
        if record["t"] == "plan":
            found += _planned(record, texts, item_id)
        make = _MAKE.get(record["t"])
        if make is not None:
            found += make(record, texts)
        if record["t"] == "reply":
            reply = record["reply"].get("text", "")
        elif record["t"] == "plan" and record.get("issues"):
            _mark(found, record["issues"], reply, texts)
    return found


def _section(title: str, value: Any, texts: ShownTexts) -> Section:
    return [title, texts.text(value), []]


def _ask(record: Record, texts: ShownTexts) -> Iterator[Section]:
    for message in record.get("messages") or ():
        role = texts.line(message["role"])
        if message.get("text") or not message.get("tool_calls"):
            yield _section(f"new message: {role}", message.get("text", ""), texts)
        if message.get("tool_calls"):
            yield _section(f"new message: {role}, calls", message["tool_calls"], texts)
        if message.get("attachments"):
            yield _section(f"new message: {role}, attachments", message["attachments"], texts)


def _reply(record: Record, texts: ShownTexts) -> Iterator[Section]:
    reply = record["reply"]
    if reply.get("reasoning"):
        yield _section("reasoning", reply["reasoning"], texts)
    if reply.get("text"):
        yield _section("reply", reply["text"], texts)
    if reply.get("tool_calls"):
        yield _section("reply, calls", reply["tool_calls"], texts)
    if reply.get("logprobs"):
        yield _tokens(reply, texts)
    yield from _seen(record["observation"], texts)


def _tokens(reply: Record, texts: ShownTexts) -> Section:
    sampled = [round(float(value), 4) for value in reply["logprobs"]]
    ids = reply.get("token_ids") or ()
    told = {name: reply.get(name) for name in ("text", "reasoning", "tool_calls")}
    shown = list(ids) if len(ids) == len(sampled) and texts.shows_all_of(told) else []
    read = len(reply.get("prompt_token_ids") or ())
    text = f"log-probability: mean {sum(sampled) / len(sampled):.3f}, lowest {min(sampled):.3f}"
    return [f"{len(sampled)} sampled tokens", text, [], {"read": read, "logprobs": sampled, "ids": shown}]


def _planned(record: Record, texts: ShownTexts, item_id: str) -> Iterator[Section]:
    for call in record["calls"]:
        if item_id == f"{record['round']}.{call['id']}":
            yield _section("arguments", call["arguments"], texts)


def _intent(record: Record, texts: ShownTexts) -> Iterator[Section]:
    yield _section("arguments", record.get("arguments"), texts)


def _result(record: Record, texts: ShownTexts) -> Iterator[Section]:
    content = record.get("full", record.get("content"))
    if content is not None:
        title = "result, before it was shortened for the orchestrator" if "full" in record else "result"
        yield _section(title, content, texts)
    yield from _seen(record, texts)


def _seen(record: Record, texts: ShownTexts) -> Iterator[Section]:
    error = record.get("error")
    if error:
        lines = [f"{error['code']}: {error['message']}"]
        lines += [f"{name}: {value}" for name, value in error.items() if name not in ("code", "message")]
        yield _section("error", "\n".join(lines), texts)
    if record.get("repairs"):
        yield _section("repaired", "\n".join(map(str, record["repairs"])), texts)
    if record.get("note"):
        yield _section("note", record["note"], texts)
    if record.get("usage"):
        yield _section("used", "\n".join(f"{name}: {value:.6g}" for name, value in record["usage"].items()), texts)


def _retry(record: Record, texts: ShownTexts) -> Iterator[Section]:
    title = f"attempt {record['attempt']} failed, repeated after {record['delay']:g} s"
    yield _section(title, f"{record['failure']}: {record['message']}", texts)


def _stall(record: Record, texts: ShownTexts) -> Iterator[Section]:
    yield _section(f"blocked the event loop for {record['seconds']:g} s", record["where"], texts)


def _attach(record: Record, texts: ShownTexts) -> Iterator[Section]:
    yield _section("attachments", record["attachments"], texts)


def _approval(record: Record, texts: ShownTexts) -> Iterator[Section]:
    yield _section("a person was asked for approval of", record["arguments"], texts)


def _decision(record: Record, texts: ShownTexts) -> Iterator[Section]:
    title = "approved" if record["approved"] else "denied"
    if record.get("arguments"):
        yield _section(f"{title}, with other arguments", record["arguments"], texts)
    yield _section(title, record.get("reason") or "no reason given", texts)


def _missing(record: Record, texts: ShownTexts) -> Iterator[Section]:
    yield _section("missing", record.get("why", "a record of this item cannot be read"), texts)


_MAKE: dict[str, Callable[[Record, ShownTexts], Iterator[Section]]] = {
    "ask": _ask,
    "reply": _reply,
    "intent": _intent,
    "result": _result,
    "retry": _retry,
    "stall": _stall,
    "attach": _attach,
    "approval": _approval,
    "decision": _decision,
    "missing": _missing,
}


def _mark(sections: list[Section], issues: Iterable[Mapping[str, Any]], reply: str, texts: ShownTexts) -> None:
    """Put issues to their places in the reply, or below it."""
    told = [[each["start"], each["end"], texts.line(f"{each['code']}: {each['message']}")] for each in issues]
    shown = next((section for section in sections if section[0] == "reply"), None)
    if shown is not None and shown[1] == reply:
        shown[2] = told
    else:
        sections.append(["faults of the text", "\n".join(mark[2] for mark in told), []])
