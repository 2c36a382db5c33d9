"""In the OpenAI Agents SDK what the program beside this one does in concertino."""

# --8<-- [start:tool]
import asyncio
import json
from dataclasses import dataclass

from agents import Agent, RunContextWrapper, Runner, RunState
from agents.decorators import tool
from openai.types.responses import ResponseTextDeltaEvent
from pydantic import BaseModel


@tool
def weather(city: str) -> str:
    """Say how warm it is in a city."""
    return {"Oslo": "4 degrees", "Rome": "18 degrees"}[city]


agent = Agent(name="Leader", model="gpt-5.4-mini", instructions="Answer in one sentence.", tools=[weather])


# --8<-- [end:tool]
# --8<-- [start:typed]
class Report(BaseModel):
    city: str
    celsius: float


reporter = Agent(name="Reporter", model="gpt-5.4-mini", output_type=Report, tools=[weather])


# --8<-- [end:typed]
# --8<-- [start:deps]
@dataclass
class User:
    name: str


@tool
def user_name(wrapper: RunContextWrapper[User]) -> str:
    """The name of the user."""
    return wrapper.context.name


greeter = Agent[User](name="Greeter", model="gpt-5.4-mini", tools=[user_name])


# --8<-- [end:deps]
# --8<-- [start:approval]
@tool(needs_approval=True)
def book(city: str, nights: int) -> str:
    """Book a hotel."""
    return f"booked {nights} nights in {city}"


clerk = Agent(name="Clerk", model="gpt-5.4-mini", tools=[book])
# --8<-- [end:approval]
# --8<-- [start:another]
guide = Agent(name="Guide", model="gpt-5.5", instructions="You know every city.", tools=[weather])
asking = agent.clone(tools=[weather, guide.as_tool("ask_guide", "Ask a guide what to see in a city.")])
# --8<-- [end:another]


async def main() -> None:
    # --8<-- [start:run-tool]
    result = await Runner.run(agent, "Is it warmer in Oslo or in Rome?")
    print(result.final_output)
    # --8<-- [end:run-tool]

    # --8<-- [start:run-typed]
    result = await Runner.run(reporter, "How warm is it in Rome?")
    print(result.final_output)
    # --8<-- [end:run-typed]

    # --8<-- [start:conversation]
    first = await Runner.run(agent, "My name is Ada.")
    question = {"role": "user", "content": "What is my name?"}
    result = await Runner.run(agent, [*first.to_input_list(), question])
    print(result.final_output)
    # --8<-- [end:conversation]

    # --8<-- [start:run-deps]
    result = await Runner.run(greeter, "Greet me.", context=User("Ada"), max_turns=10)
    print(result.final_output)
    # --8<-- [end:run-deps]

    # --8<-- [start:run-approval]
    result = await Runner.run(clerk, "Book two nights in Rome.")
    while result.interruptions:
        state = result.to_state()
        for call in result.interruptions:
            print("may it", call.name, json.loads(call.arguments or "{}"))
            state.approve(call)
        result = await Runner.run(clerk, state)
    print(result.final_output)
    # --8<-- [end:run-approval]

    # --8<-- [start:later]
    held = await Runner.run(clerk, "Book two nights in Rome.")
    stored = held.to_state().to_string()
    state = await RunState.from_string(clerk, stored)  # in another process, too
    for call in state.get_interruptions():
        state.approve(call)
    result = await Runner.run(clerk, state)
    print(result.final_output)
    # --8<-- [end:later]

    # --8<-- [start:streaming]
    streamed = Runner.run_streamed(agent, "Tell me about Rome.")
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            print(event.data.delta, end="", flush=True)
    print()
    # --8<-- [end:streaming]

    # --8<-- [start:run-another]
    result = await Runner.run(asking, "What should I see in Rome?")
    print(result.final_output)
    # --8<-- [end:run-another]


asyncio.run(main())
