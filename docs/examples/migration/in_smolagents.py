"""In smolagents what the programs beside this one do in concertino."""

# --8<-- [start:tool]
import os

from smolagents import CodeAgent, FinalAnswerStep, LogLevel, OpenAIModel, ToolCallingAgent, tool


@tool
def weather(city: str) -> str:
    """Say how warm it is in a city.

    Args:
        city: the city's name
    """
    return {"Oslo": "4 degrees", "Rome": "18 degrees"}[city]


service = {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]}
model = OpenAIModel("gpt-5.4-mini", **service)
agent = ToolCallingAgent([weather], model, instructions="Answer in one sentence.", verbosity_level=LogLevel.OFF)
print(agent.run("Is it warmer in Oslo or in Rome?"))
# --8<-- [end:tool]

# --8<-- [start:conversation]
agent.run("My name is Ada.")
print(agent.run("What is my name?", reset=False))
# --8<-- [end:conversation]


# --8<-- [start:checked]
def is_short(answer: str, memory: object, agent: object) -> bool:
    return len(answer) < 100


checked = ToolCallingAgent([weather], model, final_answer_checks=[is_short], verbosity_level=LogLevel.OFF)
print(checked.run("Is it warmer in Oslo or in Rome?"))
# --8<-- [end:checked]

# --8<-- [start:streaming]
for step in agent.run("Tell me about Rome.", stream=True):
    if isinstance(step, FinalAnswerStep):
        print(step.output)
# --8<-- [end:streaming]

# --8<-- [start:another]
guide = ToolCallingAgent(
    [weather],
    OpenAIModel("gpt-5.5", **service),
    name="ask_guide",
    description="Ask a guide what to see in a city.",
    verbosity_level=LogLevel.OFF,
)
asking = ToolCallingAgent([weather], model, managed_agents=[guide], verbosity_level=LogLevel.OFF)
print(asking.run("What should I see in Rome?"))
# --8<-- [end:another]

# --8<-- [start:code]
coder = CodeAgent([weather], model, max_steps=4, verbosity_level=LogLevel.OFF)
print(coder.run("What is 2 to the power of 100?"))
# --8<-- [end:code]
