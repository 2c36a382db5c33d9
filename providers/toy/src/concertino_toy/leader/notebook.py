"""ToolOrchestra's stateless turns: a problem, a notebook of documents, and the tools beside it; no conversation.

The notebook holds results, but not the calls that they belong to, nor the failures. A reply is matched to the problem
that it names, one reply per problem is enough, and the call of an unchanged prompt is repeated with the next model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from concertino import ChatRequest

from .conversation import CallResponse, ConversationState, WrittenCall, read_conversation
from .evidence import ProblemState, SolverReply
from .policy import read_parts, with_results
from .rounds import boxes, describe, ending_call

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
        repeats: how often this prompt was answered before without success.
    """
    text = next(message.text for message in request.messages if message.role == "user")
    shown = _CLOSING.sub("", text.removeprefix("Problem: "))
    problem, *shelves = _SHELF.split(shown, maxsplit=1)
    conversation = replace(read_conversation(request), question=problem.strip())
    parts = read_parts(conversation)
    _read_documents("".join(shelves), parts, conversation)
    call = _next(parts, conversation, repeats) or _end(parts, conversation)
    return f"<think>\n{describe(parts)}\n</think>\n{call.text()}"


def _read_documents(text: str, parts: Sequence[ProblemState], conversation: ConversationState) -> None:
    solver = conversation.solver
    for reply in _DOCUMENT.split(text):
        told = _ABOUT.search(reply)
        part = next((part for part in parts if len(parts) == 1 or (told and part.number == int(told[1]))), None)
        if solver and part and "\\boxed" in reply:
            # Whose reply it is the notebook does not say; that there is one is enough.
            part.attempts.append(SolverReply("", WrittenCall(solver.name, {}), CallResponse("OK", reply)))


def _next(parts: Sequence[ProblemState], conversation: ConversationState, repeats: int) -> WrittenCall | None:
    """A call about the first part without an answer."""
    solver = conversation.solver
    part = next((part for part in parts if not part.answered), None)
    if part is None or solver is None or solver.models is None:
        return None
    known = {other.number: other.answer[0] for other in parts if other.number in part.needs and other.answer}
    order = solver.models[2][::-1]  # nobody can confirm a reply here, so the most trusted model is asked first
    return solver.asking(with_results(part, parts, known), order[repeats % len(order)])


def _end(parts: Sequence[ProblemState], conversation: ConversationState) -> WrittenCall:
    named = (action for action in conversation.actions.values() if action.name.endswith("answer"))
    final = conversation.combiner or next(named, None)
    return ending_call(final, parts) if final else WrittenCall("answer", {"text": "\n".join(boxes(parts))})
