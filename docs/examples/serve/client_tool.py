"""Give a served pool a tool of this program. OPENAI_BASE_URL says where the pool is served."""

import json
from typing import Any

from openai import OpenAI


def weather(day: str) -> str:
    """What this machine knows, and the server does not."""
    return f"{day}: sunny"


TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather where the user is.",
            "parameters": {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]},
        },
    }
]
client = OpenAI()
talk: list[Any] = [{"role": "user", "content": "Shall I buy kiwis today?"}]
message = client.chat.completions.create(model="helper", messages=talk, tools=TOOLS).choices[0].message
while message.tool_calls:
    talk.append(message)
    for call in message.tool_calls:
        if call.type == "function":
            result = weather(**json.loads(call.function.arguments))
            print("call:", call.function.name, result)
            talk.append({"role": "tool", "tool_call_id": call.id, "content": result})
    message = client.chat.completions.create(model="helper", messages=talk, tools=TOOLS).choices[0].message
print("answer:", message.content)
