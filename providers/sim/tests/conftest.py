"""The `stage` fixture: a small stand-in for orchestrator and executor, so that the conductor is tested
without them.

It plays the ParaManager rounds with the members of a pool: refuses what breaks a schema, runs the rest
side by side, and reports each call as one `<tool_response>` block.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import pytest
from concertino import ChatRequest, Message, ModelSpec, Reply, ToolSpec

CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.S)
CONCLUDE = "Write the final answer between <answer> and </answer>."
FINAL = {"name": "final_answer", "description": "Finish.", "parameters": {"type": "object", "properties": {}}}


class FakeModel:
    def __init__(self, model: Any) -> None:
        self.model = model

    async def chat(self, messages: list[Message]) -> Reply:
        return await self.model.chat(ChatRequest(messages))


class FakeContext:
    def __init__(self, models: dict[str, Any]) -> None:
        self.models = models

    def model(self, name: str) -> FakeModel:
        return FakeModel(self.models[name])


@dataclass
class Stage:
    """The outcome of a run: the answers, the statuses of each round, and the whole conversation."""

    members: list[Any]
    rounds: int = 12
    statuses: list[list[str]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tools = {m.name.rpartition("/")[2]: m for m in self.members if isinstance(m, ToolSpec)}
        self.models = {m.short_name: m.factory() for m in self.members if isinstance(m, ModelSpec)}

    def system(self) -> Message:
        functions = [
            {"name": name, "description": tool.description, "parameters": tool.input_schema}
            for name, tool in self.tools.items()
        ]
        lines = [json.dumps({"type": "function", "function": function}) for function in [*functions, FINAL]]
        return Message("system", "You conduct.\n<tools>\n" + "\n".join(lines) + "\n</tools>")

    async def run(self, question: str) -> list[str]:
        self.messages = [self.system(), Message("user", question)]
        for left in range(self.rounds, 0, -1):
            text = (await self._ask()).text
            calls = [json.loads(body) for body in CALL.findall(text)]
            self.messages.append(Message("assistant", text))
            if calls[0]["name"] == "final_answer":
                break
            done = await asyncio.gather(*(self._call(i, call) for i, call in enumerate(calls, start=1)))
            self.statuses.append([response["status"] for response in done])
            blocks = [f"<tool_response>\n{json.dumps(response)}\n</tool_response>" for response in done]
            budget = f'<budget>{{"rounds": {left - 1}}}</budget>'
            self.messages += [Message("user", block) for block in [*blocks, budget]]
        self.messages.append(Message("user", CONCLUDE))
        final = (await self._ask()).text
        return re.findall(r"\\boxed\{(.*?)\}", final)

    async def _ask(self) -> Reply:
        return await self.models["conductor"].chat(ChatRequest(self.messages))

    async def _call(self, index: int, call: dict[str, Any]) -> dict[str, Any]:
        response: dict[str, Any] = {"id": f"{len(self.statuses) + 1}.{index}", "name": call["name"]}
        tool = self.tools[call["name"]]
        try:
            jsonschema.validate(call["arguments"], tool.input_schema)
            response |= {
                "status": "OK",
                "content": await asyncio.wait_for(self._run(tool, call), tool.timeout),
            }
        except jsonschema.ValidationError as error:
            path = "".join(f"/{key}" for key in error.absolute_path)
            response |= {
                "status": "PARSE_ERR",
                "error": {"code": "invalid_arguments", "message": "", "path": path},
            }
        except TimeoutError:
            response |= {"status": "TIMEOUT", "error": {"code": "deadline", "message": "too slow"}}
        except Exception as error:
            response |= {"status": "EXEC_ERR", "error": {"code": "raised", "message": str(error)}}
        return response

    async def _run(self, tool: ToolSpec, call: dict[str, Any]) -> Any:
        if tool.kind == "agent":
            return await tool(**call["arguments"], ctx=FakeContext(self.models))
        return tool(**call["arguments"])


@pytest.fixture
def stage() -> type[Stage]:
    return Stage


@pytest.fixture
def fake_context() -> type[FakeContext]:
    return FakeContext
