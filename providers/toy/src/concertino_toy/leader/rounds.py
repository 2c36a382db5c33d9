"""The text of a turn that calls with `<tool_call>`: ParaManager's rounds, and ToolOrchestra's serial turns.

A round may hold several calls and ends the run by a final action that takes nothing; a serial turn holds one call, and
its final action takes the answer, or makes it of the replies that it is handed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from concertino import ChatRequest

from concertino_toy.reading import write_boxes

from .conversation import OPINIONS, ConversationState, MemberSchema, WrittenCall, read_conversation, system_text
from .evidence import ProblemState
from .policy import NextCalls, read_parts

_ENDING = re.compile(r"\b[Ee]nd with [`'\"]?([\w./-]+)")
_TURNS = re.compile(r"\b(\d+) (?:turns|rounds)\b")
_AT_ONCE = re.compile(r"\b[Aa]t most (\d+) calls\b")
_FINAL = ("text", "answer")
"""What the final action of serial turns calls its argument."""


def is_serial(request: ChatRequest) -> bool:
    """Whether a conversation wants one call in each turn, and has no final action without arguments."""
    system = system_text(request)
    named = [*read_conversation(request).actions]
    one = re.search(r"\b(?:one|a single) call\b", system, re.I)
    return one is not None and not any(name.endswith("final_answer") for name in named)


def write_round(request: ChatRequest) -> str:
    """The next round, or the final answer where the last message asks for it."""
    conversation = within_limits(read_conversation(request), system_text(request))
    parts = read_parts(conversation)
    if conversation.concluding:
        return conclusion(parts)
    return round_text(parts, NextCalls(conversation, parts).calls(), conversation)


def within_limits(conversation: ConversationState, system: str, at_once: int | None = None) -> ConversationState:
    """A conversation with the limits that its system message tells: turns, and calls in one of them."""
    turns, calls = _TURNS.search(system), _AT_ONCE.search(system)
    most = at_once or conversation.calls_at_once
    return replace(
        conversation,
        turns=int(turns[1]) if turns else conversation.turns,
        calls_at_once=min(most, int(calls[1])) if calls else most,
    )


def round_text(parts: Sequence[ProblemState], calls: Sequence[WrittenCall], conversation: ConversationState) -> str:
    """A round of these calls; without any, the one that ends the run."""
    return _turn(parts, calls or [WrittenCall(conversation.final, {})], ending=not calls)


def write_serial_turn(request: ChatRequest) -> str:
    """The next call, or the one that ends the run with the answer."""
    system = system_text(request)
    conversation = within_limits(read_conversation(request), system, at_once=1)
    named = _ENDING.search(system)
    final = conversation.actions.get(named[1].rstrip(".")) if named else None
    if final is None:  # the strategy's own tool is the last one that is listed
        final = next((action for action in reversed(conversation.actions.values()) if takes_answer(action)), None)
    if final is not None and takes_answer(final):
        others = {name: action for name, action in conversation.actions.items() if action is not final}
        conversation = replace(conversation, actions=others)
    parts = read_parts(conversation)
    calls = [] if conversation.concluding else NextCalls(conversation, parts).calls()
    if calls:
        return _turn(parts, calls, ending=False)
    if final is None or conversation.concluding:
        return conclusion(parts)
    return _turn(parts, [ending_call(final, parts)], ending=True)


def takes_answer(action: MemberSchema) -> bool:
    """Whether the answer is the one argument of an action."""
    return len(action.parameters) == 1 and next(iter(action.parameters)) in _FINAL


def ending_call(final: MemberSchema, parts: Sequence[ProblemState]) -> WrittenCall:
    """The call that ends a serial run: the answer as its text, or the replies that a combiner makes it of."""
    if OPINIONS in final.parameters:
        return WrittenCall(final.name, {OPINIONS: [opinions(part) for part in parts]})
    key = next((key for key in final.parameters if key in _FINAL), next(iter(final.parameters), _FINAL[0]))
    return WrittenCall(final.name, {key: "\n".join(boxes(parts))})


def opinions(part: ProblemState) -> list[str]:
    """What a combiner is told about a part: its answer as it stands."""
    return ["\n".join(boxes([part]))]


def boxes(parts: Sequence[ProblemState]) -> list[str]:
    """One box per value of the answers; `unknown` for a part without one."""
    return write_boxes(value for part in parts for value in part.answer or ("unknown",))


def conclusion(parts: Sequence[ProblemState]) -> str:
    """The final answer, in the order of the question."""
    return "\n".join(["<reasoning>", describe(parts), "</reasoning>", "<answer>", *boxes(parts), "</answer>"])


def describe(parts: Sequence[ProblemState]) -> str:
    """What is known about each part, a line each."""
    return "\n".join(map(_state, parts))


def describe_calls(calls: Sequence[WrittenCall]) -> str:
    """What each call is for, a line each."""
    return "\n".join(f"- {call.name}: {_purpose(call)}" for call in calls)


def _turn(parts: Sequence[ProblemState], calls: Sequence[WrittenCall], *, ending: bool) -> str:
    strategy = "Nothing is left to ask, or to spend: conclude." if ending else describe_calls(calls)
    headings = f"### State Analysis\n{describe(parts)}\n\n### Strategy Planning and Tool Selection\n{strategy}"
    return "\n".join([f"<reasoning>\n{headings}\n</reasoning>", *(call.text() for call in calls)])


def _state(part: ProblemState) -> str:
    if not part.answered:
        failed = [f"{a.response.status} from {a.model or 'the executor'}" for a in part.attempts]
        return f"- Part {part.number}: no answer yet" + (f" ({', '.join(failed)})" if failed else "")
    known = "confirmed" if part.settled else "unconfirmed"
    said = ", ".join(f"{a.model} {'/'.join(a.answer)}{' (refuted)' * a.discredited}" for a in part.attempts if a.answer)
    return f"- Part {part.number}: {'/'.join(part.answer)}, {known} ({said})"


def _purpose(call: WrittenCall) -> str:
    shown = ", ".join(f"{key}={' '.join(str(value).split())[:48]!r}" for key, value in call.arguments.items())
    return shown or "no arguments"
