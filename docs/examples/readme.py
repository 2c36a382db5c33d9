import concertino as ct

@ct.tool
def weather(city: str) -> str:
    """Say what the weather is in a city."""
    return {"Oslo": "snow, -3 C", "Rome": "sun, 18 C"}.get(city, "unknown")

leader = ct.Orchestrator("openai/gpt-5.4-mini")
run = leader.run_sync("Is it warmer in Oslo or in Rome?", pool=ct.Pool.of(weather))
print(run.answer or run.detail)
