"""Checks of an answer, and code that a model writes, in concertino."""

import concertino as ct


@ct.tool
def weather(city: str) -> str:
    """Say how warm it is in a city."""
    return {"Oslo": "4 degrees", "Rome": "18 degrees"}[city]


# --8<-- [start:checked]
@ct.guard("answer")
def is_short(answer: str) -> ct.Deny | None:
    return None if len(answer) < 100 else ct.Deny("shorten it to a sentence")


checked = ct.Orchestrator("openai/gpt-5.4-mini", guards=[is_short])
print(checked.run_sync("Is it warmer in Oslo or in Rome?", pool=ct.Pool.of(weather)).answer)
# --8<-- [end:checked]

# --8<-- [start:code]
coder = ct.Orchestrator("openai/gpt-5.4-mini")
pool = ct.Pool.installed("code/python")  # from concertino-code; scripts run in a sandbox
print(coder.run_sync("What is 2 to the power of 100?", pool=pool, budget=ct.Budget(rounds=4)).answer)
# --8<-- [end:code]
