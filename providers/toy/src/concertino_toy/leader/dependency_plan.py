"""Plans with dependencies, in GAP's format: tasks, then the calls that are ready, then what is still missing.

The first turn plans one task per problem. Problems that use each other's results form one graph, each with two solvers
and a combiner whose output the next problem gets. Independent problems become nodes of a graph without edges, or a list
of queries, if the tag belongs to a solver without a choice of models. Later turns follow the policy: repairs, second
opinions, checks. When nothing is left to ask, the turn is the answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from concertino import ChatRequest, Message

from .conversation import (
    OPINIONS,
    SUBTASKS,
    CallResponse,
    ConversationState,
    MemberSchema,
    WrittenCall,
    jsons,
    read_conversation,
    response_of,
    system_text,
)
from .evidence import ProblemState
from .policy import NextCalls, by_size, read_parts, with_results
from .rounds import describe, describe_calls, within_limits

_PLAN = re.compile(r"<plan>.*?Dependencies:.*?</plan>", re.S)
_TOOL = re.compile(r"^([\w./-]+)\(\{(.*?)\}\): (.*)$", re.M)
_CALL_TAG = re.compile(r"^<(\w+)>[^<]*</\1>: ", re.M)
_NODE = re.compile(r"<node\b[^>]*>\s*([\w./-]+)\((.*?)\)\s*</node>", re.S)
_SEEN = re.compile(r"<observation>(.*?)</observation>", re.S)
_CHOICES = re.compile(r"\(([\w.-]+(?: \| [\w.-]+)+)\)")
_NEW_PLAN = re.compile(r"<plan>")
_TOKEN = re.compile(r"\w+|[^\w\s]")
MOST_CALLS = 8
MOST_NODES = 64
MOST_TOKENS = 3500
"""Tokens of a graph's text: a longer one might be cut off, so it gets one solver per problem, or is not written."""
_Node = tuple[str, WrittenCall, tuple[str, ...]]
"""A node: its id, its call, and the ids that it waits for."""


def is_plan(system: str) -> bool:
    """Whether a system message asks for a plan of tasks with dependencies."""
    return _PLAN.search(system) is not None


def write_turn(request: ChatRequest) -> str:
    """The next turn: a plan with its first calls, further calls, or the answers."""
    system = system_text(request)
    call_tags = _CALL_TAG.findall(system)
    conversation = within_limits(_read(request, system, call_tags), system, MOST_CALLS)
    parts = read_parts(conversation)
    planned = any(_NEW_PLAN.search(m.text) for m in request.messages if m.role == "assistant")
    calls = [] if conversation.concluding else NextCalls(conversation, parts).calls()
    if not calls:
        return _answer(parts)
    plan = [] if planned else ["<plan>", *_tasks(parts), "</plan>"]
    graph = _chain(parts, conversation)
    thinking = f"<think>\n{describe(parts)}\n{describe_calls(calls) if graph is None else 'All at once.'}\n</think>"
    return "\n".join([thinking, *plan, *(graph or _calls(calls, conversation, call_tags))])


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(request: ChatRequest, system: str, call_tags: Sequence[str]) -> ConversationState:
    plain = read_conversation(request)
    actions = {}
    for name, listed, about in _TOOL.findall(system):
        parameters: dict[str, dict[str, object]] = {}
        needed = []
        for argument in filter(None, listed.split(", ")):
            key, _, kind = argument.partition(":")
            parameters[key.strip()] = {}
            needed += [key.strip()] if "optional" not in kind else []
        choices = _CHOICES.search(about)
        if choices and "model" in parameters:
            parameters["model"] = {"enum": choices[1].split(" | ")}
        actions[name] = MemberSchema(name, parameters, tuple(needed))
    if not any(action.models for action in actions.values()):
        for name in actions.keys() & set(call_tags):  # what is behind a tag is taken for a solver with one model
            parameters = {**actions[name].parameters, "model": {"enum": [""]}}
            actions[name] = replace(actions[name], parameters=parameters)
    last = request.messages[-1]
    # What members said may hold the same tag.
    own = _SEEN.sub("", last.text) if last.role == "user" else ""
    concluding = len(request.messages) > 2 and "</answer>" in own and not own.startswith("PARSE_ERR")
    exchanges = tuple(_exchanges(request.messages, actions, call_tags))
    return replace(plain, actions=actions, exchanges=exchanges, concluding=concluding)


def _exchanges(
    messages: Sequence[Message], actions: dict[str, MemberSchema], call_tags: Sequence[str]
) -> Iterator[tuple[tuple[WrittenCall, CallResponse | None], ...]]:
    """What was called in each turn, with what came back, in order."""
    calls: list[WrittenCall] = []
    for message in messages:
        if message.role == "assistant":
            calls = [_call_of(name, body) for name, body in _NODE.findall(message.text)]
            for call_tag in call_tags:
                for body in re.findall(rf"<{call_tag}>(.*?)</{call_tag}>", message.text, re.S):
                    calls += [_query(actions.get(call_tag), call_tag, text) for text in _queries(body)]
        elif calls and (seen := _SEEN.search(message.text)):
            responses: list[CallResponse | None] = [response_of(data) for data in jsons(seen[1].splitlines())]
            # Results may be fewer than calls where a turn was cut off.
            yield tuple(zip(calls, [*responses, *[None] * len(calls)], strict=False))
            calls = []


def _call_of(name: str, body: str) -> WrittenCall:
    found = jsons([body])
    return WrittenCall(name, found[0] if found else {})


def _query(action: MemberSchema | None, call_tag: str, text: str) -> WrittenCall:
    key = next((key for key in SUBTASKS if action and key in action.parameters), "query")
    return WrittenCall(call_tag, {key: text})


def _queries(body: str) -> list[str]:
    try:
        data = json.loads(body)
    except ValueError:
        return [body]
    return [str(text) for text in data] if isinstance(data, list) else [body]


# -- writing -----------------------------------------------------------------------------------------------------------


def _tasks(parts: Sequence[ProblemState]) -> Iterator[str]:
    numbers = {part.number for part in parts}
    for part in parts:
        needs = [f"T{k}" for k in part.needs if k in numbers]
        yield f"T{part.number}: solve problem {part.number}"
        yield f"- Dependencies: {', '.join(needs) or 'none'}"


def _calls(calls: Sequence[WrittenCall], conversation: ConversationState, call_tags: Sequence[str]) -> list[str]:
    """Calls as queries, where all of them are; else as nodes without edges."""
    if len({call.name for call in calls}) == 1 and calls[0].name in call_tags:
        texts = [next(iter(call.arguments.values())) for call in calls if len(call.arguments) == 1]
        if len(texts) == len(calls):
            return [f"<{calls[0].name}>{_encode(texts)}</{calls[0].name}>"]
    return _nodes([(f"s{number}", call, ()) for number, call in enumerate(calls, 1)])


def _chain(parts: Sequence[ProblemState], conversation: ConversationState) -> list[str] | None:
    """The graph of missing problems that use each other's results; None where none does, or nobody can join replies."""
    solver, combiner = conversation.solver, conversation.combiner
    missing = {part.number for part in parts if not part.answered}
    if solver is None or combiner is None or not any(k in missing for part in parts for k in part.needs):
        return None
    for opinions in (1,) if conversation.exchanges else (2, 1):  # after a failure, the shorter of the two
        nodes = _chained(parts, solver, combiner, opinions)
        lines = _nodes(nodes) if nodes is not None and len(nodes) <= MOST_NODES else None
        if lines is not None and len(_TOKEN.findall("\n".join(lines))) <= MOST_TOKENS:
            return lines
    return None


def _chained(
    parts: Sequence[ProblemState], solver: MemberSchema, combiner: MemberSchema, opinions: int
) -> list[_Node] | None:
    """The nodes of such a graph, so many solvers for each problem; None where a result would be used before it is."""
    assert solver.models is not None
    _, _, names = solver.models
    nodes: list[_Node] = []
    known = {part.number: part.answer[0] for part in parts if part.answered}
    joined: dict[int, str] = {}
    for part in parts:
        needs = [k for k in part.needs if any(other.number == k for other in parts)]
        if part.answered:
            continue
        if not all(k in known for k in needs):
            return None
        text = with_results(part, parts, {k: known[k] for k in needs})
        before = tuple(joined[k] for k in needs if k in joined)
        failed = {name: sum(attempt.model == name for attempt in part.attempts) for name in names}
        order = sorted(by_size(names, part.text), key=lambda name: failed[name])
        models = sorted(order[:2], key=names.index)[-opinions:]
        ids = [f"p{part.number}_{place}" for place in range(len(models))]
        nodes += [(own, solver.asking(text, model), before) for own, model in zip(ids, models, strict=True)]
        if any(part.number in other.needs for other in parts):
            own = joined[part.number] = f"r{part.number}_"
            known[part.number] = f"{{{own}}}"
            nodes.append((own, WrittenCall(combiner.name, {OPINIONS: [[f"{{{each}}}" for each in ids]]}), tuple(ids)))
    return nodes


def _nodes(nodes: Sequence[_Node]) -> list[str]:
    lines = ["<graph>"]
    for own, call, before in nodes:
        depends = f' depends="{", ".join(before)}"' if before else ""
        lines.append(f'<node id="{own}"{depends}>{call.name}({_encode(call.arguments)})</node>')
    return [*lines, "</graph>"]


def _encode(value: object) -> str:
    # A `<` in a text could end the tag around it.
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _answer(parts: Sequence[ProblemState]) -> str:
    values = [value for part in parts for value in part.answer or ("unknown",)]
    return f"<think>\n{describe(parts)}\n</think>\n<answer>{_encode(values)}</answer>"
