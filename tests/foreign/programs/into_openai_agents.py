"""Members as function tools of openai-agents, called by an agent of its own."""

import asyncio
from typing import Any

import concertino as ct
from agents import Agent, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from calls import OURS, tell

set_tracing_disabled(True)
TOOLS = [ct.as_openai_agents_tool(OURS, name) for name in ("pay", "spend", "erase", "draw")]


def outputs(result: Any) -> list[Any]:
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


def came(output: Any) -> str:
    text = str(output)
    return text.partition(" ")[0] if text.startswith(("PARSE_ERR", "EXEC_ERR", "TIMEOUT")) else "OK"


async def lead() -> None:
    bank: dict[str, float] = {}
    script = [
        [function_call("pay", {"amount": 3, "to": None}, call_id="a")],
        [function_call("pay", {"amount": "much", "to": None}, call_id="b")],
        [function_call("spend", {"amounts": [1, 2]}, call_id="c")],
        [function_call("spend", {"amount": 1}, call_id="d")],
        [function_call("draw", {}, call_id="e")],
        [assistant_message("done")],
    ]
    model = ScriptedModel(script)
    result = await Runner.run(Agent(name="a", model=model, tools=TOOLS), "Spend it.", context=bank)
    for output, expected in zip(outputs(result), ("OK", "PARSE_ERR", "OK", "PARSE_ERR", "OK"), strict=True):
        tell("agent", expected, came(output), str(output))
    tell("agent", "done", result.final_output, bank)
    tell("deps", "{'Ada': 6.0}", str(bank), bank)
    tools = {tool.name: tool for tool in TOOLS}
    tell("strict", "True", str(tools["pay"].strict_json_schema), tools["pay"].params_json_schema)
    sent = [item for item in result.to_input_list() if item.get("type") == "function_call_output"][-1]["output"]
    tell("image", "input_image", sent[1]["type"], sent[1])


async def approve() -> None:
    """A member that needs approval interrupts the run; approved, it runs, and rejected, it does not."""
    for decide, expected in (("approve", "erased old.txt"), ("reject", "")):
        script = [[function_call("erase", {"name": "old.txt"}, call_id="x")], [assistant_message("done")]]
        agent = Agent(name="a", model=ScriptedModel(script), tools=TOOLS)
        result = await Runner.run(agent, "Erase it.")
        state = result.to_state()
        for each in result.interruptions:
            getattr(state, decide)(each)
        result = await Runner.run(agent, state)
        (output,) = outputs(result)
        tell(decide, expected, output if decide == "approve" else "", output)
        assert decide == "approve" or "erased" not in str(output)


asyncio.run(lead())
asyncio.run(approve())
