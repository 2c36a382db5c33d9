"""Tools of LlamaIndex: functions, and its own tools over a query engine and a retriever."""

from typing import Any

import concertino as ct
from calls import show
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool, RetrieverTool


def weather(location: str) -> str:
    """The weather of a place."""
    return f"rain in {location}"


async def wait(seconds: int) -> str:
    """Wait."""
    return f"waited {seconds}"


class Echo(CustomQueryEngine):
    def custom_query(self, query_str: str) -> str:
        return f"asked: {query_str}"


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[Any]:
        return [NodeWithScore(node=TextNode(text=f"a book about {query_bundle.query_str}"), score=1.0)]


show(
    ct.Pool.of(
        FunctionTool.from_defaults(weather),
        FunctionTool.from_defaults(async_fn=wait),
        QueryEngineTool.from_defaults(Echo(), name="echo", description="Ask."),
        RetrieverTool.from_defaults(Shelf(), name="shelf", description="Books."),
    ),
    ("weather", {"location": "Bergen"}, "OK"),
    ("wait", {"seconds": 1}, "OK"),
    ("echo", {"input": "why?"}, "OK"),
    ("shelf", {"input": "fjords"}, "OK"),
    ("weather", {"location": 3}, "PARSE_ERR"),
    ("wait", {}, "PARSE_ERR"),
    ("echo", {"input": 3}, "PARSE_ERR"),
)
