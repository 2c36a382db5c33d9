"""ToolOrchestra's stateless turns: a problem, a notebook of documents, and the tools beside it; no conversation.

The notebook says what came back, not for which call, nor what failed. A reply is therefore told by the problem that it
says it is about, one reply for each part is enough, and a prompt that looks as it did before has its call repeated,
with the next model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from concertino import ChatRequest

from .evidence import Attempt, Part
from .policy import read_parts, with_results
from .rounds import boxes, describe, ending_call
from .transcript import Call, Response, Transcript, read_transcript

_CLOSING = re.compile(r"\s*Choose an app\w+ tool\.'?\s*\Z")
_DOCUMENT = re.compile(r"^(?:Documents:\n)?Doc \d+: ", re.M)
_ABOUT = re.compile(r"about problem (\d+)\b")
_SHELF = re.compile(r"\n\n\s*(?=Documents:\nDoc \d+: |python code and execution outputs:|```)")
"""Where the problem ends: in front of the documents, of code, or of a heading for it."""


def is_notebook(request: ChatRequest) -> bool:
    """Whether a request is one of these prompts: two messages, and tools beside them."""
    users = [message.text for message in request.messages if message.role == "user"]
    return (
        bool(request.tools)
        and len(users) == 1
        and users[0].startswith("Problem: ")
        and _CLOSING.search(users[0]) is not None
    )


def write_call(request: ChatRequest, repeats: int) -> str:
    """The next call.

    Args:
        request: the prompt and the tools.
        repeats: how often this very prompt was answered before, in vain.
    """
    text = next(message.text for message in request.messages if message.role == "user")
    shown = _CLOSING.sub("", text.removeprefix("Problem: "))
    problem, *shelves = _SHELF.split(shown, maxsplit=1)
    transcript = replace(read_transcript(request), question=problem.strip())
    parts = read_parts(transcript)
    _read_documents("".join(shelves), parts, transcript)
    call = _next(parts, transcript, repeats) or _end(parts, transcript)
    return f"<think>\n{describe(parts)}\n</think>\n{call.text()}"


def _read_documents(text: str, parts: Sequence[Part], transcript: Transcript) -> None:
    solver = transcript.solver
    for reply in _DOCUMENT.split(text):
        told = _ABOUT.search(reply)
        part = next((part for part in parts if len(parts) == 1 or (told and part.number == int(told[1]))), None)
        if solver and part and "\\boxed" in reply:
            part.attempts.append(Attempt("", Call(solver.name, {}), Response("OK", reply)))


def _next(parts: Sequence[Part], transcript: Transcript, repeats: int) -> Call | None:
    """A call about the first part without an answer."""
    solver = transcript.solver
    part = next((part for part in parts if not part.answered), None)
    if part is None or solver is None or solver.models is None:
        return None
    known = {other.number: other.answer[0] for other in parts if other.number in part.needs and other.answer}
    order = solver.models[2][::-1]  # nobody can confirm a reply here, so the most trusted model is asked first
    return solver.asking(with_results(part, parts, known), order[repeats % len(order)])


def _end(parts: Sequence[Part], transcript: Transcript) -> Call:
    named = (action for action in transcript.actions.values() if action.name.endswith("answer"))
    final = transcript.combiner or next(named, None)
    return ending_call(final, parts) if final else Call("answer", {"text": "\n".join(boxes(parts))})
