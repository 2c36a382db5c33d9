"""In Pydantic AI what the program beside this one does in concertino."""

# --8<-- [start:tool]
import asyncio
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, UsageLimits
from pydantic_ai.capabilities import HandleDeferredToolCalls

agent = Agent("openai:gpt-5.4-mini", instructions="Answer in one sentence.")


@agent.tool_plain
def weather(city: str) -> str:
    """Say how warm it is in a city."""
    return {"Oslo": "4 degrees", "Rome": "18 degrees"}[city]


print(agent.run_sync("Is it warmer in Oslo or in Rome?").output)
# --8<-- [end:tool]


# --8<-- [start:typed]
class Report(BaseModel):
    city: str
    celsius: float


reporter = Agent("openai:gpt-5.4-mini", output_type=Report, tools=[weather])
print(reporter.run_sync("How warm is it in Rome?").output)
# --8<-- [end:typed]


# --8<-- [start:conversation]
first = agent.run_sync("My name is Ada.")
print(agent.run_sync("What is my name?", conversation=first.conversation).output)
# --8<-- [end:conversation]


# --8<-- [start:deps]
@dataclass
class User:
    name: str


greeter = Agent("openai:gpt-5.4-mini", deps_type=User)


@greeter.tool
def user_name(ctx: RunContext[User]) -> str:
    """The name of the user."""
    return ctx.deps.name


limits = UsageLimits(total_tokens_limit=20_000, tool_calls_limit=10)
print(greeter.run_sync("Greet me.", deps=User("Ada"), usage_limits=limits).output)
# --8<-- [end:deps]


# --8<-- [start:approval]
async def decide(ctx: RunContext, requests: DeferredToolRequests) -> DeferredToolResults:
    for call in requests.approvals:
        print("may it", call.tool_name, call.args_as_dict())
    return requests.build_results(approve_all=True)


clerk = Agent("openai:gpt-5.4-mini", capabilities=[HandleDeferredToolCalls(decide)])


@clerk.tool_plain(requires_approval=True)
def book(city: str, nights: int) -> str:
    """Book a hotel."""
    return f"booked {nights} nights in {city}"


print(clerk.run_sync("Book two nights in Rome.").output)
# --8<-- [end:approval]


# --8<-- [start:later]
patient = Agent("openai:gpt-5.4-mini", output_type=[str, DeferredToolRequests])
patient.tool_plain(requires_approval=True)(book)

held = patient.run_sync("Book two nights in Rome.")
assert isinstance(held.output, DeferredToolRequests)
results = held.output.build_results(approve_all=True)
print(patient.run_sync(conversation=held.conversation, deferred_tool_results=results).output)
# --8<-- [end:later]


# --8<-- [start:streaming]
async def streaming() -> None:
    async with agent.run_stream("Tell me about Rome.") as stream:
        async for text in stream.stream_text(delta=True):
            print(text, end="", flush=True)
    print()


asyncio.run(streaming())
# --8<-- [end:streaming]

# --8<-- [start:another]
guide = Agent("openai:gpt-5.5", instructions="You know every city.", tools=[weather])


@agent.tool
async def ask_guide(ctx: RunContext, question: str) -> str:
    """Ask a guide what to see in a city."""
    return (await guide.run(question, usage=ctx.usage)).output


print(agent.run_sync("What should I see in Rome?").output)
# --8<-- [end:another]
