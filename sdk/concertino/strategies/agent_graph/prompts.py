"""What an orchestrator that writes agent graphs is shown: the format, the agents on offer, its faults, failed agents.

The words are concertino's own; tags and rules are those of MAS-Orchestra, so that a model trained on its format reads
what it knows. A brief prompt leaves out what such a model knows: all but the agents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from concertino.core.format_issue import FormatIssue
from concertino.core.observation import Observation
from concertino.strategies.base.brief_prompt import PromptForm, member_list
from concertino.strategies.base.format_issues import report
from concertino.strategies.base.members import Offer, Offers, types_of
from concertino.strategies.base.observations import render_round
from concertino.text.foreign_text import QUESTION_LINES, quoting

_WORD = re.compile(r"[A-Za-z_][\w.-]*")
DoM = Literal["low", "high"]

QUOTING = quoting(
    ("agent", "edge", "from", "to"),
    (*QUESTION_LINES, r"original task\s*:", r"current sub-?task\s*:"),
)
"""How what others wrote is quoted here."""

_LOW = """You answer a question yourself, or hand it to one agent.

If the question is easy for you, think, then give the answer:
<thinking>why it is easy, and the solution</thinking>
<answer>the answer</answer>

Otherwise hand it to the agent that suits it best; what it returns is the answer. Name its output in <answer>:
<thinking>why this agent</thinking>
<agent>
  <agent_name>one of the agents below</agent_name>
  <agent_description>what it is to do here, in one line</agent_description>
  <required_arguments>
    <agent_input></agent_input>
  </required_arguments>
  <agent_output_id>result</agent_output_id>
</agent>
<answer>result</answer>

Rules
- At most one agent.
- An empty <agent_input> hands over the original question. Otherwise write the sub-task; {context}.
- Give every argument that the agent needs, each in a tag of its name. Lists are JSON: ["a", "b"]."""

_HIGH = """You design a group of agents that answers a question together: a graph in which outputs flow to one last \
agent. You write the whole graph once, before any agent runs. Agents whose inputs are ready run at the same time.

Format
<thinking>how the question splits, why these agents, which of them gives the answer</thinking>
<agent>
  <agent_id>A1</agent_id>
  <agent_name>one of the agents below</agent_name>
  <agent_description>what it is to do here, in one line</agent_description>
  <required_arguments>
    <agent_input>the sub-task of this agent</agent_input>
  </required_arguments>
</agent>
<agent>
  <agent_id>A2</agent_id>
  <agent_name>one of the agents below</agent_name>
  <agent_description>gives the answer</agent_description>
  <required_arguments>
    <agent_input>Combine the parts into the answer: ${{A1}}</agent_input>
  </required_arguments>
</agent>
<edge>
  <from>A1</from><to>A2</to>
</edge>

Rules
- agent_id: letters, digits and _ only; each differs from the others.
- ${{A1}} in an input stands for the output of agent A1. Write $${{ for the characters ${{.
- <from>X</from><to>Y</to> exactly where an input of Y holds ${{X}}, all of them in one <edge> block.
- No cycle, no edge from an agent to itself, no agent without an edge.
- Exactly one agent has no outgoing edge. What it returns is the answer, so it must answer the whole question.
- One agent alone is a graph too: leave <edge> out.
- An empty <agent_input> hands over the original question. Otherwise {context}.
- Give every argument that an agent needs, each in a tag of its name. Lists are JSON: ["a", "b"].
- At most {agents} agents."""

_BRIEF: dict[DoM, str] = {
    "low": "Answer, or hand the question to one agent, which answers.",
    "high": "Write one graph of at most {agents} agents; its last one answers.",
}

_QUOTE = """
- A text that must hold its own closing tag stands in <![CDATA[ ... ]]>."""

_CONTEXT = {
    True: "the original question is put in front of it for you",
    False: "it must stand alone: the agent sees nothing else",
}

_FAULTY = """PARSE_ERR: nothing was run. Correct this, and write everything again, complete:
{faults}"""

_FAILED = """The agent that gives the answer ({sink}) did not succeed. What the agents returned:
{results}

Write another graph that avoids what failed, or the answer between <answer> and </answer> if you know it."""

_BRIEF_FAILED = """{results}
{sink} failed: write another graph, or the <answer>."""

CUT_OFF = "the text ended (length limit) before it was complete; think more briefly and write it again, shorter"


def system_prompt(
    tools: Sequence[Mapping[str, Any]], dom: DoM, prepend_task: bool, agents: int, prompt: PromptForm = "full"
) -> str:
    """The system message: the format and the agents on offer."""
    if prompt == "brief":
        offered = member_list(Offers(tools).values(), arguments=_input_of, quoting=QUOTING)
        return f"{_BRIEF[dom].format(agents=agents)}\n{offered}"
    text = (_LOW if dom == "low" else _HIGH).format(context=_CONTEXT[prepend_task], agents=agents) + _QUOTE
    return f"{text}\n\nAgents\n{_agents(tools)}"


def _agents(tools: Sequence[Mapping[str, Any]]) -> str:
    """Every member with its arguments, one per line."""
    lines = []
    for offer in Offers(tools).values():
        lines.append(f"{offer.name}: {QUOTING.text(' '.join(offer.description.split()))}")
        for name, schema in offer.properties.items():
            needed = name in offer.required
            if name == offer.input:
                text = {"type": "string", "description": _meaning(schema)}
                lines.append(f"  <agent_input> {_described(text, needed)}")
            else:
                lines.append(f"  {_argument_tag(name)} {_described(schema, needed)}")
    return "\n".join(lines)


def _argument_tag(name: str) -> str:
    """The tag of an argument; a name that is no word may hold anything, line breaks and tags too."""
    return f"<{name}>" if _WORD.fullmatch(name) else QUOTING.text(f"<{' '.join(name.split())}>")


def _input_of(offer: Offer) -> dict[str, str]:
    """What an agent's input is called, whatever its argument is."""
    return {offer.input: "agent_input"} if offer.input else {}


def _described(schema: Any, required: bool) -> str:
    """Type, limits and meaning of an argument."""
    if not isinstance(schema, Mapping):
        return "(any)"
    types = sorted(types_of(schema) - {"null"})
    kind = "text" if types == ["string"] else " or ".join(types) if len(types) < 5 else "any"
    limits = [
        f"{words} {json.dumps(schema[key], ensure_ascii=False)}"
        for key, words in (("enum", "one of"), ("minItems", "at least"), ("maxItems", "at most"), ("default", "else"))
        if key in schema
    ]
    about = ", ".join([kind, *limits] if required else [kind, "optional", *limits])
    return QUOTING.text(f"({about}) {_meaning(schema)}".rstrip())


def _meaning(schema: Any) -> str:
    return " ".join(str(schema.get("description", "")).split()) if isinstance(schema, Mapping) else ""


def before_subtask(question: str) -> str:
    """What is put in front of an agent's own task."""
    return f"Original task: {QUOTING.text(question)}\n\nCurrent sub-task: "


def render_faults(text: str, faults: Iterable[FormatIssue]) -> str:
    """The faults of a text, as its writer reads them."""
    return _FAULTY.format(faults=report(text, faults))


def render_failure(
    sink: str,
    observations: Sequence[Observation],
    ids: Sequence[str],
    remaining: Mapping[str, float] | None,
    prompt: PromptForm = "full",
) -> str:
    """The results of a graph without an answer."""
    text = _BRIEF_FAILED if prompt == "brief" else _FAILED
    return text.format(sink=sink, results=render_round(observations, ids, remaining, prompt=prompt, quoting=QUOTING))
