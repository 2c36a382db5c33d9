"""Members as function tools of openai-agents."""

import asyncio

import concertino as ct
from agents import Agent, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call


@ct.tool(approval=True)
def erase(name: str) -> str:
    """Erase a file."""
    return f"erased {name}"


# In place of a model of OpenAI, so that this program runs anywhere.
CALL = function_call("erase", {"name": "old.txt"}, call_id="1")
MODEL = ScriptedModel([[CALL], [assistant_message("It is gone.")]])


async def main() -> None:
    set_tracing_disabled(True)
    tool = ct.as_openai_agents_tool(ct.Pool.of(erase), "erase")
    agent = Agent(name="cleaner", model=MODEL, tools=[tool])
    result = await Runner.run(agent, "Erase old.txt.")
    state = result.to_state()
    for interruption in result.interruptions:
        print("approve", interruption.name, interruption.arguments)
        state.approve(interruption)
    result = await Runner.run(agent, state)
    print(result.final_output)


asyncio.run(main())
