"""Tools of LangChain: a function, and one with a schema and a name of its own."""

import concertino as ct
from calls import show
from langchain_core.tools import tool
from pydantic import BaseModel, Field


class Query(BaseModel):
    text: str = Field(description="what to look for")


@tool
def times(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


@tool("look-up", args_schema=Query)
async def look_up(text: str) -> str:
    """Look something up."""
    return f"found {text}"


show(
    ct.Pool.of(times, look_up),
    ("times", {"a": 6, "b": 7}),
    ("look-up", {"text": "fjords"}),
    ("times", {"a": "six", "b": 7}),
    ("look-up", {}),
)
