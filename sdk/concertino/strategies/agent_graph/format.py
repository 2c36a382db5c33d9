"""Agent graphs in MAS-Orchestra's format: text read into a plan, and a plan written as text.

A text is either a direct answer or a graph. The plan of a graph has one call per agent; its edges are the references
in the inputs, and the edges of the text. Invariant: there is a plan, or an answer, or at least one fault, and what
`write_graph` writes for a plan is read as the same plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from concertino.core.errors import PlanError
from concertino.core.format_issue import FormatIssue
from concertino.core.plan import Call, Plan, Ref, Template, unparse
from concertino.strategies.base.format_issues import FormatIssues, suggestion
from concertino.strategies.base.members import Offer, Offers
from concertino.strategies.base.tags import Leaf, quote

from .arguments import ID, ArgumentReader, Handed
from .prompts import CUT_OFF, DoM
from .rules import Edges, Node, edges_of, sinks_of
from .text import AgentElement, GraphElements, read_elements

CODES: dict[str, str] = {
    "answer_and_agent": "There are agents, and `<answer>` does not name the output of the one that gives the answer.",
    "bad_id": "An agent_id has characters other than letters, digits and `_`, or more than 64 of them.",
    "bad_json": "An argument could not be read as JSON.",
    "bad_reference": "`${` is not closed, or has no id in it.",
    "cut_off": "The length limit ended the text.",
    "cycle": "The edges have a cycle.",
    "direct_answer": "An answer without agents, where a graph is expected (DoM high); lenient readers take it.",
    "duplicate_edge": "An edge is written twice; lenient readers take it once.",
    "duplicate_field": "A field, an argument or `<answer>` is written twice.",
    "duplicate_id": "Two agents have the same agent_id.",
    "edge_without_reference": "An edge without data flow; lenient readers take it as an order.",
    "grouped_edges": "All `<from>` come before all `<to>`; lenient readers pair them in order.",
    "invalid_arguments": "The agent's schema refuses its arguments.",
    "isolated_agent": "An agent of several has no edge.",
    "misplaced_argument": "An argument is outside of `<required_arguments>`; lenient readers take it.",
    "missing_field": "A field is missing; lenient readers fill in those that have one meaning.",
    "no_graph": "The text holds no agent and no answer.",
    "reference_without_edge": "A reference has no edge; lenient readers add it.",
    "self_edge": "An agent has an edge or a reference to itself.",
    "several_edge_blocks": "There are several `<edge>` blocks; lenient readers read them as one.",
    "several_sinks": "Several agents have no outgoing edge.",
    "stray_tag": "A closing tag closes nothing; lenient readers leave it out.",
    "stray_text": "Text between the elements; lenient readers leave it out.",
    "tag_attributes": "A tag has attributes.",
    "too_many_agents": "More agents than the degree of MAS, or the setting, allows.",
    "too_many_arguments": "An agent has more than 64 arguments.",
    "too_many_references": "An agent refers to outputs more than 1,000 times.",
    "too_many_tags": "The text has more than 50,000 tags.",
    "unclosed_tag": "An element is not closed, or opens again before it is closed.",
    "unexpected_tag": "A tag does not belong where it stands.",
    "unknown_agent": "No member of the pool has the agent_name.",
    "unknown_node": "An edge names no agent of the graph.",
    "unknown_reference": "A reference names no agent of the graph.",
    "unpaired_edge": "The numbers of `<from>` and `<to>` differ.",
}
"""What can be wrong with a text, by code."""

_NAME = "agent"
_LIMIT = 64


class GraphReading(NamedTuple):
    """What a text says.

    Attributes:
        plan: the graph as calls, `None` if there is none or it has a fault.
        sink: id of the call that gives the answer.
        answer: a direct answer.
        thinking: what was thought.
        issues: in the order of the text.
    """

    plan: Plan | None
    sink: str
    answer: str | None
    thinking: str
    issues: tuple[FormatIssue, ...]

    @property
    def faults(self) -> list[FormatIssue]:
        """Issues that keep the graph from running."""
        return [issue for issue in self.issues if not issue.repaired]


def read_graph(
    text: str,
    tools: Sequence[Mapping[str, Any]],
    *,
    dom: DoM = "high",
    strict: bool = False,
    question: str = "",
    prepend_task: bool = True,
    renamed: Mapping[str, str] | None = None,
    max_agents: int = _LIMIT,
    max_parallel: int | None = None,
    cut_off: bool = False,
) -> GraphReading:
    """Read the text of a graph or of a direct answer. Never raises for any text.

    Args:
        text: what the model wrote.
        tools: the members on offer, as OpenAI-style function objects.
        dom: degree of MAS: `low` allows one agent, `high` a graph.
        strict: refuse what lenient reading repairs.
        question: the original task.
        prepend_task: put the original task in front of every input that is not empty.
        renamed: argument names of the text, by those that the schemas of this pool have instead.
        max_agents: of one graph.
        max_parallel: agents that may be ready at the same time, `None` for any number.
        cut_off: the length limit ended the text.
    """
    issues = FormatIssues(strict)
    elements = read_elements(text, issues)
    thinking = "\n\n".join(filter(None, elements.thinking))
    # An answer that was closed is whole, whatever the limit cut off behind it.
    if cut_off and not (elements.answer_closed and not elements.agents):
        issues.refuse("cut_off", CUT_OFF, len(text), len(text))
    limit = 1 if dom == "low" else max_agents
    if len(elements.agents) > limit:
        more = elements.agents[limit]
        words = f"{len(elements.agents)} agents, and {limit} allowed; " + (
            "hand the question to one" if limit == 1 else "merge some of them"
        )
        issues.refuse("too_many_agents", words, more.start, more.end)
        return GraphReading(None, "", None, thinking, issues.all())
    if not elements.agents:
        answer = _direct_answer(text, elements, dom, issues)
        return GraphReading(None, "", None if issues.faults else answer, thinking, issues.all())
    ids = _ids(elements.agents, dom, issues)
    reader = ArgumentReader(question, prepend_task, renamed or {}, frozenset(ids), issues)
    plan, sink = _graph(elements, ids, Offers(tools), reader, dom)
    widest = max(plan.levels(), key=len) if plan is not None and max_parallel is not None else []
    if max_parallel is not None and len(widest) > max_parallel:
        more = elements.agents[ids.index(widest[max_parallel])]
        words = f"{len(widest)} agents would run at the same time, and {max_parallel} may; put some behind others"
        issues.refuse("too_many_agents", words, more.start, more.end)
        plan = None
    return GraphReading(plan, sink, None, thinking, issues.all())


def _direct_answer(text: str, elements: GraphElements, dom: DoM, issues: FormatIssues) -> str | None:
    answer = elements.answer
    if answer is None or not answer.text:
        if not issues.faults:
            wanted = "an <agent> or an <answer>" if dom == "low" else "<agent> blocks and one <edge> block"
            what = "an empty <answer>" if answer is not None else "no agent and no answer"
            issues.refuse("no_graph", f"the text holds {what}; write {wanted} after </thinking>", 0, len(text))
        return None
    if dom == "high":
        words = "a direct answer where a graph is wanted; write at least one <agent>"
        issues.mend("direct_answer", words, answer.start, answer.end)
    return answer.text


def _ids(agents: Sequence[AgentElement], dom: DoM, issues: FormatIssues) -> list[str]:
    """The id of every agent, in order."""
    ids: list[str] = []
    for agent in agents:
        leaf = agent.fields.get("agent_id") or agent.fields.get("agent_output_id")
        # The paper writes `agent_id` in a graph and `agent_output_id` for a single agent; either is understood.
        needed = "agent_id" if dom == "high" else "agent_output_id"
        if needed not in agent.fields:
            words = f"<{needed}> is missing in the agent"
            may = leaf is not None or len(agents) == 1
            (issues.mend if may else issues.refuse)("missing_field", words, agent.start, agent.end)
        found = leaf.text if leaf is not None else _NAME
        start, end = (leaf.start, leaf.end) if leaf is not None else (agent.start, agent.end)
        # A missing id is reported above; the stand-in for it must not add a second issue.
        if not ID.fullmatch(found) and leaf is not None:
            words = f"the agent_id {found[:64]!r} must have 1 to 64 letters, digits and _, as in Check_2"
            issues.refuse("bad_id", words, start, end)
        elif found in ids and leaf is not None:
            words = f"the agent_id {found!r} is used twice; ids must differ"
            issues.refuse("duplicate_id", words, start, end)
        ids.append(found)
    return ids


def _graph(
    elements: GraphElements, ids: Sequence[str], offers: Offers, reader: ArgumentReader, dom: DoM
) -> tuple[Plan | None, str]:
    """The plan of the agents and its sink, if nothing is wrong."""
    issues = reader.issues
    nodes: dict[str, Node] = {}
    calls: list[tuple[str, str, Handed]] = []
    for agent, own_id in zip(elements.agents, ids, strict=True):
        offer = _offer(agent, offers, issues)
        handed = reader.read(agent, own_id, offer)
        # Shape faults of the graph are shown at the id, where a model can find the agent.
        place = agent.fields.get("agent_id")
        start, end = (place.start, place.end) if place is not None else (agent.start, agent.end)
        nodes[own_id] = Node(own_id, start, end, handed.references, [leaf.text for _, leaf in agent.arguments])
        calls.append((own_id, offer.name, handed))
    # Every agent was read before this, so that one reply lists the faults of all of them.
    edges = edges_of(nodes, elements.pairs, issues)
    if issues.faults:
        return None, ""
    # Exactly one: `edges_of` refuses every other number.
    [sink] = sinks_of(nodes, edges)
    named = {sink, elements.agents[list(ids).index(sink)].fields.get("agent_output_id", Leaf(sink, 0, 0)).text}
    _check_answer(elements, named, sink, dom, issues)
    if issues.faults:
        return None, ""
    return Plan(_call(own_id, name, handed, edges) for own_id, name, handed in calls), sink


def _offer(agent: AgentElement, offers: Offers, issues: FormatIssues) -> Offer:
    """The member that an agent names; one without arguments where there is none."""
    leaf = agent.fields.get("agent_name")
    if leaf is None or not leaf.text:
        words = f"<agent_name> is missing in the agent; {suggestion('', offers.keys())}"
        issues.refuse("missing_field", words, agent.start, agent.end)
    elif leaf.text not in offers:
        # Near names are the costly part of this message; past the limit nobody would read it.
        if not issues.full:
            words = f"there is no agent {leaf.text[:64]!r}; {suggestion(leaf.text[:64], offers.keys())}"
            issues.refuse("unknown_agent", words, leaf.start, leaf.end)
    else:
        if "agent_description" not in agent.fields:
            issues.mend("missing_field", "<agent_description> is missing in the agent", agent.start, agent.end)
        return offers[leaf.text]
    # A stand-in, so that the arguments of an unknown agent are still checked for references and JSON.
    return Offer({"function": {"name": leaf.text if leaf is not None else "?"}})


def _check_answer(elements: GraphElements, named: set[str], sink: str, dom: DoM, issues: FormatIssues) -> None:
    """Where there are agents, `<answer>` may only name the output of the last one."""
    answer = elements.answer
    if answer is None or not answer.text:
        if dom == "low":
            agent = elements.agents[0]
            issues.mend("missing_field", "<answer> with the agent_output_id is missing", agent.start, agent.end)
        return
    words = f"<answer> must name the output of agent {sink!r}; write its id there, or an answer and no agent"
    if answer.text not in named:
        issues.refuse("answer_and_agent", words, answer.start, answer.end)
    elif dom == "high":
        issues.mend("answer_and_agent", "a graph needs no <answer>", answer.start, answer.end)


def _call(own_id: str, name: str, handed: Handed, edges: Edges) -> Call:
    # A reference is an edge already; `after` holds only edges that carry no data.
    after = tuple(other for other in edges[own_id] if other not in {found.id for found in handed.references})
    return Call(name, handed.values, own_id, after)


# -- writing -----------------------------------------------------------------------------------------------------------


def write_graph(
    plan: Plan, *, descriptions: Mapping[str, str] | None = None, thinking: str = "", dom: DoM = "high"
) -> str:
    """A plan as text; `read_graph` reads the same plan from it where the tools have its arguments.

    Args:
        plan: one call per agent; ids of letters, digits and `_`.
        descriptions: by id; a call without one is described by its name.
        thinking: what stands in front.
        dom: which of the two formats; `low` takes a plan of one call.

    Raises:
        PlanError: an id, or a `$` right in front of a reference, that the format cannot express.
    """
    for call in plan.calls:
        if not ID.fullmatch(call.id):
            raise PlanError(f"call {call.id!r}: an agent_id has 1 to 64 letters, digits and _")
    known = descriptions or {}
    # Either mark inside the thought would end it early when the text is read again.
    thought = thinking.replace("</think", "</ think").replace("assistantfinal", "assistant final")
    parts = [f"<thinking>{thought}</thinking>"]
    parts += [_write_agent(call, known.get(call.id, call.name), dom) for call in plan.calls]
    pairs = [
        f"  <from>{other}</from><to>{call.id}</to>" for call in plan.calls for other in plan.edges.get(call.id, ())
    ]
    if pairs:
        parts.append("\n".join(["<edge>", *pairs, "</edge>"]))
    if dom == "low":
        parts.append(f"<answer>{plan.calls[0].id}</answer>")
    return "\n".join(parts)


def write_answer(answer: str, thinking: str = "") -> str:
    """A direct answer as text."""
    return f"<thinking>{thinking.replace('</think', '</ think')}</thinking>\n<answer>{quote(answer)}</answer>"


def _write_agent(call: Call, description: str, dom: DoM) -> str:
    arguments = call.arguments if isinstance(call.arguments, Mapping) else json.loads(call.arguments or "{}")
    id_tag = "agent_id" if dom == "high" else "agent_output_id"
    name = f"  <agent_name>{quote(call.name)}</agent_name>"
    about = f"  <agent_description>{quote(description)}</agent_description>"
    own_id = f"  <{id_tag}>{call.id}</{id_tag}>"
    values = [f"    <{key}>{quote(_written(value))}</{key}>" for key, value in arguments.items()]
    body = ["  <required_arguments>", *values, "  </required_arguments>"]
    head = [own_id, name, about, *body] if dom == "high" else [name, about, *body, own_id]
    return "\n".join(["<agent>", *head, "</agent>"])


def _written(value: Any) -> str:
    """An argument as text: a text as it is, anything else as JSON."""
    if isinstance(value, (str, Template, Ref)):
        return str(unparse(_escaped(value)))
    return json.dumps(unparse(_escaped(value)), ensure_ascii=False)


def _escaped(value: Any) -> Any:
    """Plain texts with `${` written as `$${`; templates escape their own."""
    if isinstance(value, Template):
        # `$` and `${id}` side by side would read as `$${`, which is the escape.
        for text, behind in pairwise(value.parts):
            if isinstance(text, str) and text.endswith("$") and isinstance(behind, Ref):
                raise PlanError(f"a '$' right in front of ${{{behind.id}}} cannot be written; put a space between them")
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: _escaped(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_escaped(item) for item in value]
    return value


__all__ = ["CODES", "GraphReading", "read_graph", "write_answer", "write_graph"]
