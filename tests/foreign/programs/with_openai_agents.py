"""Function tools of openai-agents, and an agent of it as a tool."""

import concertino as ct
from agents import Agent, RunContextWrapper, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message
from calls import show

set_tracing_disabled(True)


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


@function_tool
async def greet(wrapper: RunContextWrapper[str], word: str) -> str:
    """Greet whoever asks."""
    return f"{word}, {wrapper.context}"


poet = Agent(name="poet", model=ScriptedModel([[assistant_message("Rain, rain.")]]))

show(
    ct.Pool.of(weather, greet, poet.as_tool("poem", "Write a poem.")),
    ("weather", {"city": "Bergen"}, "OK"),
    ("greet", {"word": "Hei"}, "OK"),
    ("poem", {"input": "about rain"}, "OK"),
    ("weather", {"city": 3}, "PARSE_ERR"),
    ("greet", {}, "PARSE_ERR"),
    ("poem", {"inputs": "about rain"}, "PARSE_ERR"),
    deps="Ada",
)
