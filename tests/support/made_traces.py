"""Records of runs that nobody ran: of any size, with a text of choice in every field that a page may show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

STATUSES = ("OK", "OK", "EXEC_ERR", "OK", "PARSE_ERR", "OK", "TIMEOUT")


def records_of(
    rounds: int = 2, width: int = 3, text: str = "", run: str = "r1", texts: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """A whole run. In each round the second call waits for the first, and the last is an agent with a call inside.

    Args:
        text: stands in every field that holds a text of strangers.
        texts: one for each round instead, in turn.
    """
    at = 0.0
    setup = {
        "strategy": {"name": text or "parallel-rounds"},
        "pool": text or "abc",
        "roles": {text or "lead": text or "toy/x"},
        "budget": {"usd": 10.0, "rounds": rounds + 1, "seconds": 1e4},
    }
    found: list[dict[str, Any]] = [
        {"t": "run", "run": run, "question": text or "How many?", "setup": setup, "at": 1_790_000_000.0}
    ]
    for number in range(1, rounds + 1):
        here = texts[(number - 1) % len(texts)] if texts else text
        found += _request(number, at, here)
        at += 0.5
        found += _round(number, width, at, here)
        at += 1.0
    found += _request(rounds + 1, at, text)
    end = {"answer": text or "3", "stop": text or "answered", "detail": text, "usage": {"usd": 0.5, "calls": 3}}
    return [*found, {"t": "end", **end, "at": at + 0.5}]


def _request(number: int, at: float, text: str) -> list[dict[str, Any]]:
    messages = [{"role": "user", "text": text or f"what is known after {number}"}]
    seen = {
        "id": f"ask.{number}",
        "name": text or "lead",
        "status": "OK",
        "usage": {"usd": 0.01, "input_tokens": 50},
        "attempts": 1,
        "started": at,
        "ended": at + 0.5,
    }
    reply = {
        "text": text or f"I call {number}",
        "finish_reason": "stop",
        "reasoning": text or "because",
        "tool_calls": [{"name": text or "add", "arguments": {text or "a": text or 1}, "id": text or "x"}],
    }
    asked = {"t": "ask", "id": f"ask.{number}", "role": text or "lead", "model": text or "toy/x"}
    return [
        {**asked, "messages": messages, "at": at},
        {"t": "reply", "id": f"ask.{number}", "role": text or "lead", "reply": reply, "observation": seen},
    ]


def _round(number: int, width: int, at: float, text: str) -> list[dict[str, Any]]:
    arguments = {text or "a": text or number, "of": "x"}
    calls: list[dict[str, Any]] = [
        {"name": text or f"tool{place % 5}", "arguments": {**arguments, "place": place}, "id": str(place)}
        for place in range(1, width + 1)
    ]
    if width > 1:
        calls[1]["after"] = ["1"]
    issues = [{"code": text or "code", "message": text or "a fault", "start": 2, "end": 6}]
    found: list[dict[str, Any]] = [{"t": "plan", "round": number, "calls": calls, "at": at, "issues": issues}]
    for place, call in enumerate(calls, 1):
        begun = at + 0.3 if place == 2 else at
        found += _call(f"{number}.{place}", call, begun, begun + 0.2 + 0.1 * (place % 5), text, inside=place == width)
    return found


def _call(
    call_id: str, call: dict[str, Any], begun: float, ended: float, text: str, *, inside: bool
) -> list[dict[str, Any]]:
    status = STATUSES[int(call["id"]) % len(STATUSES)]
    kind = "agent" if inside else "tool"
    began = {"name": call["name"], "kind": kind, "arguments": call["arguments"], "at": begun, "key": "k"}
    found: list[dict[str, Any]] = [{"t": "intent", "id": call_id, **began}]
    result: dict[str, Any] = {
        "t": "result",
        "id": call_id,
        "name": call["name"],
        "status": status,
        "usage": {"usd": 0.001, "calls": 1},
        "attempts": 1,
        "started": begun,
        "ended": ended,
        "note": text or "a note",
        "repairs": [text or "a quote added"],
    }
    if status == "OK":
        result["content"] = {text or "sum": text or "a result of some length"}
    else:
        result["error"] = {"code": text or "no_use", "message": text or "it failed", "near": [text or "ad"]}
        retried = {"attempt": 1, "failure": text or "timeout", "message": text or "slow", "delay": 0.1}
        found += [
            {"t": "retry", "id": call_id, "name": call["name"], **retried},
            {"t": "stall", "id": call_id, "name": call["name"], "seconds": 0.3, "where": text or "x.py:3"},
        ]
    if inside:
        found += [
            {**found[0], "id": f"{call_id}/1", "kind": "tool", "parent": call_id},
            {**result, "id": f"{call_id}/1", "parent": call_id},
        ]
    return [*found, result]
