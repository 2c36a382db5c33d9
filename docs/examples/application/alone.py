"""No tools: one request, and its text is the answer."""

import concertino as ct
from concertino.testing import ScriptedModel
from pydantic import BaseModel


class Bill(BaseModel):
    owner: str
    amount: float


model = ScriptedModel('{"owner": "Ada", "amount": 12.5}')  # or "openai/gpt-5.4-mini"
reader = ct.Orchestrator(model, instructions="Read the bill.", answer_type=Bill)
print(repr(reader.run_sync("For Ada: 12.50").require_output()))

print(ct.Orchestrator(ScriptedModel("Paris.")).run_sync("The capital of France?").answer)
