"""In LangGraph, with LangChain's agents, what the program beside this one does in concertino."""

# --8<-- [start:tool]
from dataclasses import dataclass

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolCallLimitMiddleware
from langchain.tools import ToolRuntime, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel


@tool
def weather(city: str) -> str:
    """Say how warm it is in a city."""
    return {"Oslo": "4 degrees", "Rome": "18 degrees"}[city]


def user(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text}]}


agent = create_agent("openai:gpt-5.4-mini", tools=[weather], system_prompt="Answer in one sentence.")
print(agent.invoke(user("Is it warmer in Oslo or in Rome?"))["messages"][-1].text)
# --8<-- [end:tool]


# --8<-- [start:typed]
class Report(BaseModel):
    city: str
    celsius: float


reporter = create_agent("openai:gpt-5.4-mini", tools=[weather], response_format=Report)
print(reporter.invoke(user("How warm is it in Rome?"))["structured_response"])
# --8<-- [end:typed]


# --8<-- [start:conversation]
keeper = create_agent("openai:gpt-5.4-mini", tools=[weather], checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "ada"}}
keeper.invoke(user("My name is Ada."), thread)
print(keeper.invoke(user("What is my name?"), thread)["messages"][-1].text)
# --8<-- [end:conversation]


# --8<-- [start:deps]
@dataclass
class User:
    name: str


@tool
def user_name(runtime: ToolRuntime[User]) -> str:
    """The name of the user."""
    return runtime.context.name


limits = [ToolCallLimitMiddleware(run_limit=10)]
greeter = create_agent("openai:gpt-5.4-mini", tools=[user_name], context_schema=User, middleware=limits)
print(greeter.invoke(user("Greet me."), context=User("Ada"))["messages"][-1].text)
# --8<-- [end:deps]


# --8<-- [start:approval]
@tool
def book(city: str, nights: int) -> str:
    """Book a hotel."""
    return f"booked {nights} nights in {city}"


clerk = create_agent(
    "openai:gpt-5.4-mini",
    tools=[book],
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"book": True})],
    checkpointer=InMemorySaver(),
)
thread = {"configurable": {"thread_id": "1"}}
state = clerk.invoke(user("Book two nights in Rome."), thread)
while interrupts := state.get("__interrupt__"):
    calls = [call for interrupt in interrupts for call in interrupt.value["action_requests"]]
    for call in calls:
        print("may it", call["name"], call["args"])
    state = clerk.invoke(Command(resume={"decisions": [{"type": "approve"} for _ in calls]}), thread)
print(state["messages"][-1].text)
# --8<-- [end:approval]


# --8<-- [start:streaming]
run = agent.stream_events(user("Tell me about Rome."), version="v3")
for message in run.messages:
    for delta in message.text:
        print(delta, end="", flush=True)
print()
# --8<-- [end:streaming]


# --8<-- [start:another]
guide = create_agent("openai:gpt-5.5", tools=[weather], system_prompt="You know every city.")


@tool
def ask_guide(question: str) -> str:
    """Ask a guide what to see in a city."""
    return guide.invoke(user(question))["messages"][-1].text


asking = create_agent("openai:gpt-5.4-mini", tools=[weather, ask_guide])
print(asking.invoke(user("What should I see in Rome?"))["messages"][-1].text)
# --8<-- [end:another]
