"""Function tools of openai-agents."""

import concertino as ct
from agents import RunContextWrapper, function_tool
from calls import show


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


@function_tool
async def greet(wrapper: RunContextWrapper[str], word: str) -> str:
    """Greet whoever asks."""
    return f"{word}, {wrapper.context}"


show(
    ct.Pool.of(weather, greet),
    ("weather", {"city": "Bergen"}),
    ("greet", {"word": "Hei"}),
    ("weather", {"city": 3}),
    ("greet", {}),
    deps="Ada",
)
