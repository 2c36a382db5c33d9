"""Members as tools of LangChain: called by hand, and by an agent of its own."""

import asyncio
from typing import Any

import concertino as ct
from calls import OURS, tell
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

bank: dict[str, float] = {}
pay = ct.as_langchain_tool(OURS, "pay", deps=bank)
spend = ct.as_langchain_tool(OURS, "spend", deps=bank)
erase = ct.as_langchain_tool(OURS, "erase", approve=lambda request: request.arguments["name"] == "old.txt")
draw = ct.as_langchain_tool(OURS, "draw")


def call(name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_call", "id": "1", "name": name, "args": args}


def came(message: Any) -> str:
    return "OK" if message.status == "success" else str(message.content).split()[0]


shown = convert_to_openai_tool(pay)["function"]
tell("schema", "amount", ",".join(shown["parameters"]["required"]), shown)

for tool, args, expected in (
    (pay, {"amount": 3}, "OK"),
    (pay, {"amount": "much"}, "PARSE_ERR"),
    (pay, {"amout": 3}, "PARSE_ERR"),
    (erase, {"name": "old.txt"}, "OK"),
    (erase, {"name": "new.txt"}, "EXEC_ERR"),
):
    message = tool.invoke(call(tool.name, args))
    tell(tool.name, expected, came(message), message.content)
    assert (message.artifact is None) == (message.status == "error")

plain = pay.invoke({"amount": 1})
tell("plain", "{'Ada': 4.0}", str(plain), plain)


class Scripted(FakeMessagesListChatModel):
    heard: list[Any] = []  # noqa: RUF012

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> Any:
        self.heard.append(messages)
        return super()._generate(messages, *rest, **options)


async def lead() -> None:
    """An agent of LangChain calls an agent of ours, with wrong arguments first, and sees an image."""
    says = [
        AIMessage("", tool_calls=[call("spend", {"amounts": "three"})]),
        AIMessage("", tool_calls=[call("spend", {"amounts": [1, 2]})]),
        AIMessage("", tool_calls=[call("draw", {})]),
        AIMessage("done"),
    ]
    model = Scripted(responses=says)
    agent = create_agent(model, [spend, draw])
    state = await agent.ainvoke({"messages": [("user", "Spend it.")]})
    results = [message for message in state["messages"] if message.type == "tool"]
    for message, expected in zip(results, ("PARSE_ERR", "OK", "OK"), strict=True):
        tell("agent", expected, came(message), message.content)
    tell("block", "image", results[2].content[1]["type"], results[2].content_blocks[1]["type"])
    tell("agent", "done", state["messages"][-1].content, bank)


asyncio.run(lead())
