"""Tools of LangChain: decorated functions, and what its own makers of tools give: retriever, runnable, simple tool."""

from typing import Any

import concertino as ct
from calls import show
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool, Tool, ToolException, create_retriever_tool, tool
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


@tool
def refuse(reason: str) -> str:
    """Refuse."""
    raise ToolException(reason)


def answered(number: int) -> str:
    """Answer, if it can."""
    if number < 0:
        raise ToolException("below zero")
    return f"answer {number}"


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(page_content=f"a book about {query}")]


def double(given: dict[str, int]) -> int:
    return 2 * given["number"]


show(
    ct.Pool.of(
        times,
        look_up,
        refuse,
        create_retriever_tool(Shelf(), "shelf", "Books."),
        RunnableLambda(double).as_tool(name="double", description="Double it.", arg_types={"number": int}),
        Tool(name="shout", description="Say it loud.", func=str.upper),
        StructuredTool.from_function(answered, handle_tool_error=True),
    ),
    ("times", {"a": 6, "b": 7}, "OK"),
    ("look-up", {"text": "fjords"}, "OK"),
    ("shelf", {"query": "fjords"}, "OK"),
    ("double", {"number": 4}, "OK"),
    ("shout", {"tool_input": "hei"}, "OK"),
    ("answered", {"number": 1}, "OK"),
    ("answered", {"number": -1}, "EXEC_ERR"),
    ("refuse", {"reason": "it rains"}, "EXEC_ERR"),
    ("shout", {"text": "hei"}, "PARSE_ERR"),
    ("times", {"a": "six", "b": 7}, "PARSE_ERR"),
    ("look-up", {}, "PARSE_ERR"),
    ("shelf", {"query": 3}, "PARSE_ERR"),
    ("double", {"number": "four"}, "PARSE_ERR"),
)
