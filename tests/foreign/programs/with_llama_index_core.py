"""Function tools of LlamaIndex."""

import concertino as ct
from calls import show
from llama_index.core.tools import FunctionTool


def weather(location: str) -> str:
    """The weather of a place."""
    return f"rain in {location}"


async def wait(seconds: int) -> str:
    """Wait."""
    return f"waited {seconds}"


show(
    ct.Pool.of(FunctionTool.from_defaults(weather), FunctionTool.from_defaults(async_fn=wait)),
    ("weather", {"location": "Bergen"}),
    ("wait", {"seconds": 1}),
    ("weather", {"location": 3}),
    ("wait", {}),
)
