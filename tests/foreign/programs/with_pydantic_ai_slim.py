"""A tool and a toolset of pydantic-ai."""

import concertino as ct
from calls import show
from pydantic_ai import FunctionToolset, RunContext, Tool


def roll(ctx: RunContext[str], sides: int) -> str:
    """Roll a die."""
    return f"{ctx.deps} rolled one of {sides}"


toolset = FunctionToolset()


@toolset.tool_plain
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


show(
    ct.Pool.of(Tool(roll), toolset),
    ("roll", {"sides": 6}),
    ("add", {"a": 1}),
    ("roll", {"sides": "six"}),
    ("add", {"c": 1}),
    deps="Ada",
)
