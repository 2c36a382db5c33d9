"""Members as tools of LangChain, for its agents."""

import concertino as ct


@ct.tool
def convert(celsius: float) -> float:
    """Celsius to Fahrenheit."""
    return celsius * 9 / 5 + 32


pool = ct.Pool.of(convert)
tools = [ct.as_langchain_tool(pool, name) for name in pool.visible_names]
# create_agent(model, tools)

for celsius in (10, "warm"):
    call = {"type": "tool_call", "id": "1", "name": "convert", "args": {"celsius": celsius}}
    message = tools[0].invoke(call)
    print(message.status, message.content)
