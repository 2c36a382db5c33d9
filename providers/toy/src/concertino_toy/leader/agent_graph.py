"""Agent graphs, in the format of MAS-Orchestra: a whole group of agents in one text.

Each problem has two solvers of different models in parallel. Their replies meet in a combiner, whose output a later
problem may use, and the last combiner joins all problems. Where one agent is allowed, it gets the whole question.

After a failure the results are kept: they stand in the next graph as texts, and agents are written for the missing
problems and where one of two solvers failed. A failed call fails all that depends on it, so a broken chain is not
written a second time, and there is no third graph: one agent takes the whole question, or the known answers are given.
After a refused text the next graph has one solver per problem, and then one agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from concertino import ChatRequest

from .conversation import (
    OPINIONS,
    CallResponse,
    ConversationState,
    MemberSchema,
    WrittenCall,
    read_conversation,
    system_text,
)
from .evidence import ProblemState
from .policy import TRIES_PER_MODEL, by_size, read_parts, with_results
from .rounds import boxes, describe

_OFFER = re.compile(r"^([\w./-]+): (.*(?:\n[ \t]+<\w+>.*)*)", re.M)
_ARGUMENT = re.compile(r"^[ \t]+<(\w+)>[ \t]*\(([^\n]*)", re.M)
_CHOICE = re.compile(r"one of (\[[^\]]*\])")
_LIMIT = re.compile(r"[Aa]t most (\d+) agents")
_AGENT = re.compile(r"<agent>(.*?)</agent>", re.S)
_FIELD = re.compile(r"<(\w+)>(?:<!\[CDATA\[(.*?)\]\]>|([^<]*))</\1>", re.S)
_RESPONSE = re.compile(r"<tool_response>(.*?)</tool_response>", re.S)
_REFUSED = re.compile(r"\APARSE_ERR")


def is_graph(system: str) -> bool:
    """Whether a system message asks for agents as elements of a text."""
    return "<agent_name>" in system and "<agent_description>" in system


def write_graph(request: ChatRequest) -> str:
    """The graph, or the answer where it is known."""
    system = system_text(request)
    conversation = _read(request, system)
    parts = read_parts(conversation)
    refusals = sum(bool(_REFUSED.match(message.text)) for message in request.messages if message.role == "user")
    solver = conversation.solver
    low, tries = "<agent_output_id>" in system, len(conversation.exchanges)
    if solver is None or solver.models is None:
        return _direct(parts)
    prepended, names = "in front of" in system, solver.models[2]
    alone = tries > 1 or conversation.combiner is None
    if all(p.answered and (alone or not _better(p, names, conversation, prepended)) for p in parts):
        return _direct(parts)
    broken = tries > 1 or (tries == 1 and _chained([part for part in parts if not part.answered]))
    if low or broken or refusals > 1 or (conversation.combiner is None and len(parts) > 1):
        return _one_agent(conversation, parts, solver, low=low)
    limit = _LIMIT.search(system)
    graph = _Graph(conversation, parts, solver, prepended=prepended)
    # Two opinions where the limit allows them, else one; after a refusal the shorter graph has the better chance.
    for opinions in (2, 1) if refusals == 0 and conversation.combiner is not None else (1,):
        agents = graph.agents(opinions)
        if agents is not None and len(agents) <= (int(limit[1]) if limit else 64):
            return _written(agents, parts)
    return _one_agent(conversation, parts, solver, low=False)


def _better(part: ProblemState, names: Sequence[str], conversation: ConversationState, prepended: bool) -> list[str]:
    """The models for a problem that are more trusted than the one that answered, and may be asked again."""
    answered = max((names.index(a.model) for a in part.attempts if a.answer and a.model in names), default=-1)
    failed = [attempt.model for attempt in part.attempts if not attempt.answer]
    final = {attempt.model for attempt in part.attempts if attempt.final}
    two = by_size(names, _length_of(part, conversation, prepended))[:2]
    better = [name for name in two if names.index(name) > answered and name not in final]
    return [name for name in better if not part.settled and failed.count(name) < TRIES_PER_MODEL]


def _length_of(part: ProblemState, conversation: ConversationState, prepended: bool) -> str:
    """The text that a solver of a problem has to read: the whole question, where that is put in front."""
    return conversation.question if prepended else part.text


def _chained(parts: Sequence[ProblemState]) -> bool:
    """Whether one of these problems needs the result of another."""
    return any(k in part.needs for part in parts for k in (other.number for other in parts))


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(request: ChatRequest, system: str) -> ConversationState:
    """The conversation: what each agent of an earlier graph returned."""
    plain = read_conversation(request)
    exchanges = []
    asked: list[WrittenCall] = []
    for message in request.messages:
        if message.role == "assistant":
            asked = [_call_of(body) for body in _AGENT.findall(message.text)]
        elif message.role == "user" and (bodies := _RESPONSE.findall(message.text)) and asked:
            exchanges.append(tuple(zip(asked, [_response(body) for body in bodies], strict=False)))
    return replace(plain, actions=_offers(system), exchanges=tuple(exchanges))


def _call_of(body: str) -> WrittenCall:
    values = {name: quoted or plain for name, quoted, plain in _FIELD.findall(body)}
    frame = ("agent_id", "agent_name", "agent_description", "agent_output_id")
    return WrittenCall(values.get("agent_name", ""), {key: value for key, value in values.items() if key not in frame})


def _response(body: str) -> CallResponse:
    try:
        data = json.loads(body)
    except ValueError:
        data = {}
    error = data.get("error")
    return CallResponse(str(data.get("status", "")), data.get("content"), error if isinstance(error, dict) else {})


def _offers(system: str) -> dict[str, MemberSchema]:
    """The agents on offer: a name at the start of a line, then an indented line for each argument."""
    found = {}
    for name, body in _OFFER.findall(system):
        parameters = {key: _schema(about) for key, about in _ARGUMENT.findall(body)}
        needed = [key for key, about in _ARGUMENT.findall(body) if "optional" not in about.partition(")")[0]]
        if parameters:
            found[name] = MemberSchema(name, parameters, tuple(needed))
    return found


def _schema(about: str) -> dict[str, object]:
    listed = _CHOICE.search(about)
    try:
        return {"enum": json.loads(listed[1])} if listed else {}
    except ValueError:
        return {}


# -- the graph ---------------------------------------------------------------------------------------------------------


@dataclass
class _Agent:
    """One agent: arguments as they are written, and whose outputs stand in them."""

    id: str
    name: str
    about: str
    arguments: dict[str, str]
    before: list[str] = field(default_factory=list)


class _Graph:
    """The agents for what is not answered yet."""

    def __init__(
        self, conversation: ConversationState, parts: Sequence[ProblemState], solver: MemberSchema, *, prepended: bool
    ) -> None:
        self._conversation, self._parts, self._solver, self._prepended = conversation, parts, solver, prepended
        self._agents: list[_Agent] = []
        self._sources: dict[int, str] = {}

    def agents(self, opinions: int) -> list[_Agent] | None:
        """All agents, the sink last; None where a problem waits for what nobody will find out."""
        self._agents, self._sources = [], {}
        needed = {k for part in self._parts for k in part.needs}
        sink: list[list[str]] = []
        before: list[str] = []
        for part in self._parts:
            if part.answered:
                again = [] if part.settled else self._solvers(part, 1) or []
                before += again
                sink.append(["\n".join(boxes([part])), *(f"${{{name}}}" for name in again)])
                self._sources[part.number] = part.answer[0]
                continue
            solvers = self._solvers(part, opinions)
            if solvers is None:
                return None
            if part.number in needed and len(self._parts) > 1:
                solvers = [self._joined(f"R{part.number}", [[f"${{{name}}}" for name in solvers]], solvers)]
                self._sources[part.number] = f"${{{solvers[0]}}}"
            before += solvers
            sink.append([f"${{{name}}}" for name in solvers])
        if len(self._agents) > 1 or len(self._parts) > 1 or self._sources:
            self._joined("Answer", sink, before)
        return self._agents

    def _solvers(self, part: ProblemState, opinions: int) -> list[str] | None:
        """Write the solvers of a problem, the most trusted last; their ids."""
        if any(k not in self._sources for k in part.needs if any(other.number == k for other in self._parts)):
            return None
        known = {k: self._sources[k] for k in part.needs if k in self._sources}
        before = [value[2:-1] for value in known.values() if value.startswith("${")]
        # What stands in front of every input need not be written again.
        short = self._prepended and len(self._parts) > 1
        # Doubled signs keep what stands in the problem from being read as a reference.
        stated = part.text.replace("${", "$${")
        text = f"Problem {part.number}: as the original task states it." if short else stated
        told = with_results(replace(part, text=text), self._parts, known)
        ids = []
        for model in self._models(part, opinions):
            ids.append(f"P{part.number}_{re.sub(r'[^A-Za-z0-9]', '_', model)}")
            assert self._solver.models is not None
            subtask, key, _ = self._solver.models
            arguments = {subtask: told, key: model}
            self._agents.append(_Agent(ids[-1], self._solver.name, f"solve problem {part.number}", arguments, before))
        return ids or None

    def _models(self, part: ProblemState, opinions: int) -> list[str]:
        """Models for a problem, the most trusted last: of the two that suit it best and failed least."""
        assert self._solver.models is not None
        names = self._solver.models[2]
        if part.answered:
            return _better(part, names, self._conversation, self._prepended)[:opinions]
        failed = {name: sum(attempt.model == name for attempt in part.attempts) for name in names}
        text = _length_of(part, self._conversation, self._prepended)
        order = sorted(by_size(names, text), key=lambda name: failed[name])
        final = {attempt.model for attempt in part.attempts if attempt.final}
        usable = [name for name in order if failed[name] < TRIES_PER_MODEL and name not in final]
        return sorted(usable[:2], key=names.index)[-opinions:]

    def _joined(self, own_id: str, opinions: list[list[str]], before: list[str]) -> str:
        """Write a combiner; its id."""
        combiner = self._conversation.combiner
        assert combiner is not None
        arguments = {OPINIONS: json.dumps(opinions)}
        self._agents.append(_Agent(own_id, combiner.name, "join the answers", arguments, before))
        return own_id


# -- writing -----------------------------------------------------------------------------------------------------------


def _written(agents: Sequence[_Agent], parts: Sequence[ProblemState]) -> str:
    lines = [f"<thinking>\n{describe(parts)}\n</thinking>"]
    for agent in agents:
        given = [f"    {_element(key, value)}" for key, value in agent.arguments.items()]
        lines += [
            "<agent>",
            f"  {_element('agent_id', agent.id)}",
            f"  {_element('agent_name', agent.name)}",
            f"  {_element('agent_description', agent.about)}",
            "  <required_arguments>",
            *given,
            "  </required_arguments>",
            "</agent>",
        ]
    edges = [f"  <from>{other}</from><to>{agent.id}</to>" for agent in agents for other in agent.before]
    return "\n".join([*lines, *(["<edge>", *edges, "</edge>"] if edges else [])])


def _one_agent(
    conversation: ConversationState, parts: Sequence[ProblemState], solver: MemberSchema, *, low: bool
) -> str:
    """The whole question to one solver, or `unknown` when all of them failed."""
    assert solver.models is not None
    subtask, key, names = solver.models
    made = [pair for exchange in conversation.exchanges for pair in exchange if pair[0].arguments.get(subtask) == ""]
    asked = [call.arguments.get(key) for call, _ in made]
    refused = [call.arguments.get(key) for call, seen in made if seen and seen.error.get("code") == "rejected"]
    order = [name for name in by_size(names, conversation.question) if name not in refused]
    model = next((name for name in order if asked.count(name) < TRIES_PER_MODEL), None)
    if model is None:
        return _direct(parts)
    own = _element("agent_output_id" if low else "agent_id", "result")
    name, about = _element("agent_name", solver.name), _element("agent_description", "answer the whole question")
    given = ["  <required_arguments>", f"    <{subtask}></{subtask}>", f"    {_element(key, model)}"]
    lines = ["<agent>", f"  {own}", f"  {name}", f"  {about}", *given, "  </required_arguments>", "</agent>"]
    ending = ["<answer>result</answer>"] if low else []
    return "\n".join([f"<thinking>\nOne agent takes it all: {model}.\n</thinking>", *lines, *ending])


def _direct(parts: Sequence[ProblemState]) -> str:
    joined = "\n".join(boxes(parts))
    return f"<thinking>\n{describe(parts)}\n</thinking>\n<answer>{joined}</answer>"


def _element(name: str, text: str) -> str:
    plain = "<" not in text and text == text.strip()
    # `]]>` would end the section, so it is cut in two.
    inner = text if plain else f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"
    return f"<{name}>{inner}</{name}>"
