"""Texts of agent graphs, and the tools that they are read with."""

from __future__ import annotations

import json
from typing import Any


def tool(name: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """A function object as a pool makes it."""
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": f"The {name}.", "parameters": schema}}


TEXT = {"type": "string"}
ROLES = {"type": "array", "items": TEXT, "minItems": 2}
COT = tool("cot", {"subtask": TEXT, "model": TEXT})
DEBATE = tool("debate", {"roles": ROLES, "subtask": TEXT}, "roles")
COUNT = tool("count", {"of": {"type": "object"}, "times": {"type": "integer"}}, "times")
SEARCH = tool("look_up", {"queries": {"type": "array", "items": TEXT, "minItems": 1}}, "queries")
TOOLS = [COT, DEBATE, COUNT, SEARCH]
RENAMED = {"debate_roles": "roles"}
THOUGHT = "<thinking>Split it.</thinking>"


def agent(own_id: str, text: str = "", name: str = "cot", **arguments: Any) -> str:
    """One agent in the high format."""
    more = "".join(f"<{key}>{json.dumps(value)}</{key}>" for key, value in arguments.items())
    return (
        f"<agent><agent_id>{own_id}</agent_id><agent_name>{name}</agent_name>"
        f"<agent_description>d</agent_description>"
        f"<required_arguments><agent_input>{text}</agent_input>{more}</required_arguments></agent>"
    )


def edges(*pairs: str) -> str:
    """An edge block of pairs like `A>B`."""
    parts = [pair.split(">") for pair in pairs]
    return "<edge>" + "".join(f"<from>{one}</from><to>{two}</to>" for one, two in parts) + "</edge>"


def graph(*parts: str) -> str:
    """A whole text."""
    return "\n".join((THOUGHT, *parts))


TWO = graph(agent("A", "Compute 3*4."), agent("B", "Given ${A}, answer."), edges("A>B"))
DIAMOND = graph(
    agent("A", "a"),
    agent("B", "b ${A}"),
    agent("C", "c ${A}"),
    agent("D", "d ${B} ${C}"),
    edges("A>B", "A>C", "B>D", "C>D"),
)
LOW = (
    "<thinking>One is enough.</thinking>\n<agent><agent_name>cot</agent_name><agent_description>d</agent_description>"
    "<required_arguments><agent_input>{}</agent_input></required_arguments>"
    "<agent_output_id> out </agent_output_id></agent>\n<answer>out</answer>"
)
