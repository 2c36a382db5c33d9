"""A member as a plain async function, which is a tool of pydantic-ai."""

import asyncio

import concertino as ct
from calls import OURS, tell
from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

bank: dict[str, float] = {}
shown: list[AgentInfo] = []
SAYS = [{"amount": "much"}, {"amount": 3}, None]


def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    shown.append(info)
    arguments = SAYS[len(shown) - 1]
    return ModelResponse(parts=[TextPart("done") if arguments is None else ToolCallPart("pay", arguments)])


agent = Agent(FunctionModel(say), tools=[ct.as_function(OURS, "pay", deps=bank)])
result = agent.run_sync("Pay.")
returns = [part for message in result.all_messages() for part in message.parts if part.part_kind == "tool-return"]
(definition,) = shown[0].function_tools
tell("schema", "amount", ",".join(definition.parameters_json_schema["required"]), definition.parameters_json_schema)
tell("text", "Pay somebody.", definition.description or "", None)
tell("calls", "retried,success", ",".join(part.outcome for part in returns), bank)
tell("agent", "done", result.output, bank)

for arguments, expected in (([3], "OK"), (["x"], "PARSE_ERR")):
    try:
        tell("spend", expected, *asyncio.run(ct.as_function(OURS, "spend", deps=bank)(arguments)), None)
    except ct.CallFailed as failed:
        tell("spend", expected, failed.observation.status.value, str(failed))
