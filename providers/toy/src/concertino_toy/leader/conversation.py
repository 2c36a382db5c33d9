"""A conversation in the ParaManager format, as the leader sees it: members, question, rounds, budget.

Everything is read from the messages, so the leader keeps no state and can be asked about any prefix
of a run. Names of members are never assumed: a *solver* is a function with a subtask and a choice of models,
a *calculator* takes an expression, a *reader* takes a text. What cannot be read is left out; the rest
still counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from concertino import ChatRequest, Message
from concertino.text import write_tool_call

from concertino_toy.reading import call_blocks

SUBTASKS = ("subtask", "agent_input", "task")
"""Names of parameters that take a subtask."""
OPINIONS = "opinions"
"""The parameter of a combiner: for each problem, the replies of those who solved it."""
_TOOLS = re.compile(r"<tools>(.*?)</tools>", re.S)
_RESPONSE = re.compile(r"<tool_response>(.*?)</tool_response>", re.S)
_BUDGET = re.compile(r"<budget>(.*?)</budget>", re.S)


@dataclass(frozen=True)
class WrittenCall:
    """A call as the leader wrote it."""

    name: str
    arguments: dict[str, Any]

    def text(self) -> str:
        """The call in the format of a round."""
        return write_tool_call(self.name, self.arguments)


@dataclass(frozen=True)
class CallResponse:
    """What came back for a call: status, content, and the error's fields."""

    status: str
    content: Any = None
    error: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MemberSchema:
    """A function of the pool: its name and the JSON schemas of its parameters."""

    name: str
    parameters: dict[str, dict[str, Any]]
    required: tuple[str, ...]

    @property
    def models(self) -> tuple[str, str, tuple[str, ...]] | None:
        """(subtask parameter, model parameter, model names) of a solver, None of anything else."""
        subtask = next((key for key in SUBTASKS if key in self.parameters), None)
        for key in ("model", "model_id"):
            names = texts(self.parameters.get(key, {}).get("enum"))
            if subtask and names:
                return subtask, key, names
        return None

    def asking(self, subtask: str, model: str) -> WrittenCall:
        """The call that gives a subtask to a model of this solver; to its only one, if that has no name."""
        assert self.models is not None
        text, key, _ = self.models
        return WrittenCall(self.name, {text: subtask, key: model} if model else {text: subtask})


@dataclass(frozen=True)
class ConversationState:
    """The conversation so far.

    Attributes:
        actions: the action space, by name.
        question: the user's question.
        exchanges: every call with its response, by round; the response is None where none came.
        budget: what the last `<budget>` block says remains.
        concluding: the last message asks for the final answer.
        calls_at_once: how many calls may go out together.
        turns: how many turns with calls there are.
    """

    actions: dict[str, MemberSchema]
    question: str
    exchanges: tuple[tuple[tuple[WrittenCall, CallResponse | None], ...], ...]
    budget: dict[str, float]
    concluding: bool
    calls_at_once: int = 4
    turns: int = 12

    @property
    def solver(self) -> MemberSchema | None:
        """The first action that solves a subtask with a model of one's choice."""
        return next((action for action in self.actions.values() if action.models), None)

    @property
    def final(self) -> str:
        """The name of the action that ends the run."""
        return next((name for name in self.actions if name.endswith("final_answer")), "final_answer")

    @property
    def combiner(self) -> MemberSchema | None:
        """The action that joins the answers of several solvers."""
        return next((action for action in self.actions.values() if OPINIONS in action.parameters), None)

    def taking(self, parameter: str) -> MemberSchema | None:
        """The first action that needs this parameter and no other."""
        return next((action for action in self.actions.values() if action.required == (parameter,)), None)

    def responses_to(self, call: WrittenCall) -> list[CallResponse]:
        """The responses to this very call, in order."""
        return [seen for exchange in self.exchanges for made, seen in exchange if made == call and seen is not None]

    def response_to(self, call: WrittenCall) -> CallResponse | None:
        """The last response to this very call."""
        return next(iter(self.responses_to(call)[::-1]), None)


def read_conversation(request: ChatRequest) -> ConversationState:
    """Read the messages of a request."""
    messages = list(request.messages)
    listed = jsons(line for m in messages if m.role == "system" for line in _lines(_TOOLS, m.text))
    first = next((i for i, m in enumerate(messages) if m.role == "user"), len(messages))
    after = messages[first + 1 :]
    # What members answered may quote any tag: only the text around it is the orchestrator's own.
    said = [_RESPONSE.sub("", m.text) if m.role != "assistant" else "" for m in messages]
    budgets = jsons(_lines(_BUDGET, "\n".join(said)))
    return ConversationState(
        actions={action.name: action for action in map(schema_of, [*listed, *request.tools]) if action.name},
        question=_BUDGET.sub("", messages[first].text).strip() if first < len(messages) else "",
        exchanges=tuple(_exchanges(after)),
        budget={k: v for k, v in (budgets or [{}])[-1].items() if isinstance(v, int | float)},
        concluding=bool(after) and "<answer>" in said[-1] and "</answer>" in said[-1],
    )


def system_text(request: ChatRequest) -> str:
    """All system messages of a request."""
    return "\n".join(message.text for message in request.messages if message.role == "system")


def _exchanges(messages: Sequence[Message]) -> Iterable[tuple[tuple[WrittenCall, CallResponse | None], ...]]:
    calls: list[WrittenCall] = []
    responses: list[CallResponse] = []
    for message in [*messages, Message("assistant", "")]:
        if message.role != "assistant":
            # One that cannot be read keeps its place, so that the others stay with their calls.
            responses += [response_of((jsons([body]) or [{}])[0]) for body in _RESPONSE.findall(message.text)]
            continue
        if calls:
            missing = [None] * max(0, len(calls) - len(responses))
            yield tuple(zip(calls, [*responses, *missing], strict=False))
        calls, responses = list(map(_call, jsons(call_blocks(message.text)))), []


def _lines(block: re.Pattern[str], text: str) -> list[str]:
    return [line for body in block.findall(text) for line in body.splitlines() if line.strip()]


def jsons(bodies: Iterable[str]) -> list[dict[str, Any]]:
    """The JSON objects among some texts; the others are left out."""
    found = []
    for text in bodies:
        try:
            data = json.loads(text)
        except ValueError:
            continue
        if isinstance(data, dict):
            found.append(data)
    return found


def schema_of(data: Mapping[str, Any]) -> MemberSchema:
    """An OpenAI-style function object as an action."""
    function = _object(data.get("function", data))
    schema = _object(function.get("parameters"))
    properties = {name: _object(described) for name, described in _object(schema.get("properties")).items()}
    return MemberSchema(str(function.get("name", "")), properties, texts(schema.get("required")))


def _call(data: dict[str, Any]) -> WrittenCall:
    return WrittenCall(str(data.get("name", "")), _object(data.get("arguments")))


def response_of(data: dict[str, Any]) -> CallResponse:
    """One line of an observation."""
    return CallResponse(str(data.get("status", "")), data.get("content"), _object(data.get("error")))


def _object(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {}


def texts(data: Any) -> tuple[str, ...]:
    """The items of a list as texts; none of anything else."""
    return tuple(map(str, data)) if isinstance(data, list) else ()
