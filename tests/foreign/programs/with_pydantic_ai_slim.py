"""Tools of pydantic-ai: of a function, of a JSON schema, and a toolset."""

from typing import Any

import concertino as ct
from calls import show
from pydantic_ai import FunctionToolset, RunContext, Tool


def roll(ctx: RunContext[str], sides: int) -> str:
    """Roll a die."""
    return f"{ctx.deps} rolled one of {sides}"


def total(**numbers: Any) -> int:
    return int(sum(numbers.values()))


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
toolset = FunctionToolset()


@toolset.tool_plain
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


show(
    ct.Pool.of(Tool(roll), toolset, Tool.from_schema(total, "total", "Add up.", SCHEMA)),
    ("roll", {"sides": 6}, "OK"),
    ("add", {"a": 1}, "OK"),
    ("total", {"a": 1, "b": 2}, "OK"),
    ("roll", {"sides": "six"}, "PARSE_ERR"),
    ("add", {"c": 1}, "PARSE_ERR"),
    ("total", {"a": 1}, "PARSE_ERR"),
    deps="Ada",
)
