"""Guards of the question, of calls, of results and of the answer."""

import re

import concertino as ct
from concertino.testing import ScriptedModel

CARD = re.compile(r"\d{4}-\d{4}")


@ct.tool
def pay(amount: float) -> str:
    """Pay an amount."""
    return f"paid {amount:g} with card 4000-1234"


@ct.guard("question")
def on_topic(question: str) -> ct.Deny | None:
    return None if "pay" in question else ct.Deny("I only pay bills")


@ct.guard("call", only="pay")
def small_sums(call: ct.GuardedCall, ctx: ct.Context[float]) -> ct.Deny | None:
    return ct.Deny(f"at most {ctx.deps:g}") if call.arguments["amount"] > ctx.deps else None


@ct.guard("result")
def no_cards(result: ct.GuardedResult) -> ct.Replace:
    return ct.Replace(CARD.sub("****", str(result.content)))


@ct.guard("answer")
def polite(answer: str) -> ct.Deny | None:
    return None if answer.endswith("Anything else?") else ct.Deny("end with 'Anything else?'")


model = ScriptedModel(
    [("pay", {"amount": 5}), ("pay", {"amount": 500})],
    "<answer>One bill is paid.</answer>",
    "One bill is paid. Anything else?",
)
leader = ct.Orchestrator(model, guards=[on_topic, small_sums, no_cards, polite])
run = leader.run_sync("Please pay my bills.", pool=ct.Pool.of(pay), deps=100.0)
for seen in run.observations:
    print(seen.content if seen.error is None else seen.error.message)
print(run.answer)

run = leader.run_sync("Write a poem.", pool=ct.Pool.of(pay), deps=100.0)
print(run.stop, "-", run.detail)
